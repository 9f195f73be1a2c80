// lockstep slurm-node: the process that srun starts on every node of a submitted job. Runs the
// pre-flight, brings the job's wheels, then runs the node's agent. Ends early if the pre-flight
// leaves the node out. People do not call this.
#include "base/environment.h"
#include "base/log.h"
#include "base/text.h"
#include "cli/own_words.h"
#include "cli/run_options.h"
#include "cli/subcommand.h"
#include "codec/json.h"
#include "container/enter.h"
#include "io/fd.h"
#include "io/open_files.h"
#include "io/replace_file.h"
#include "jobs/on_slurm/node_wheels.h"
#include "launch/launch_config.h"
#include "launch/machine_facts.h"
#include "launch/scheduler_rule.h"
#include "proc/spawn.h"
#include "rows/table.h"
#include "slurm/job_folder.h"
#include "slurm/job_run.h"
#include "slurm/node_probe.h"
#include "slurm/node_step.h"
#include "slurm/preflight_run.h"
#include "slurm/verdict.h"

#include <fmt/core.h>

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace lockstep::cli {
namespace {

constexpr const char* kProgram = "lockstep slurm-node";

struct NodeOptions {
  std::string folder;
  bool drop_binary = false;
  std::string preflight = env_text("LOCKSTEP_PREFLIGHT");
  std::vector<std::string> modules;
  std::vector<std::string> run;  // words for `lockstep run`
};

Result<NodeOptions> read_options(const Args& words) {
  NodeOptions options;
  if (options.preflight.empty()) options.preflight = "full";
  std::string modules;
  LOCKSTEP_TRY_ASSIGN(options.run, read_own_words(words, options.folder,
                                                  {{"--drop-binary", &options.drop_binary},
                                                   {"--preflight", &options.preflight},
                                                   {"--import", &modules}}));
  if (!modules.empty()) options.modules = split(modules, ',');
  return options;
}

struct Node {
  NodeOptions options;
  slurm::JobFolder folder;
  int run = 0;  // how often the job was requeued before
  std::string name;
  // The nodes of the step and this node's rank. nullopt: unknown, or not one task on each node.
  std::optional<launch::Placement> placement = {};
  slurm::PreflightDecision decision = {};
};

std::optional<launch::Placement> find_placement() {
  auto found = launch::read_placement(launch::machine_facts());
  if (!found || !*found || !(*found)->one_task_per_node || (*found)->hosts.empty())
    return std::nullopt;
  return std::move(*found);
}

// Reads the words as `lockstep run` will. nullopt: the run will refuse the words, or only print.
std::optional<launch::RawOptions> options_of_run(const NodeOptions& options,
                                                 const launch::Facts& facts) {
  const auto parsed = parse_options(run_table(), options.run, [&](std::string_view name) {
    return facts.env(std::string(name));
  });
  if (!parsed || !parsed->ended_by.empty()) return std::nullopt;
  return raw_options(run_table(), *parsed);
}

// Returns the question for the Python that the ranks will use; empty: no Python is started, because
// with --no-python no rank uses it.
slurm::PythonQuestion question_of(const NodeOptions& options, const launch::Facts& facts) {
  if (options.preflight != "full") return {};
  const auto raw = options_of_run(options, facts);
  // The Python of an image cannot be asked before the image is there.
  if (!raw || raw->no_python || raw->container) return {};
  launch::Origin origin;
  const auto python = launch::find_python(facts, origin);
  return {python.value_or(""), options.modules};
}

// Returns why this node cannot start the container of the job; empty: it can, or none is wanted.
std::string image_trouble(const NodeOptions& options, const launch::Facts& facts) {
  const auto raw = options_of_run(options, facts);
  if (!raw || !raw->container) return {};
  std::error_code failed;
  const std::string folder = std::filesystem::current_path(failed);
  const Status able = container::check_here(*raw->container, folder, env_text("PATH"));
  return able ? "" : able.error().message;
}

// Returns the path of the decision. Each step needs its own decision: a user's own script may have
// several steps in one run.
std::string file_of(const Node& node) {
  const std::string step = env_text("SLURM_STEP_ID");
  return node.folder.preflight(node.run) + (step.empty() || step == "0" ? "" : "." + step);
}

// Runs the pre-flight and returns the decision of all nodes. nullopt: no decision; the node takes
// part, because a pre-flight that fails must not cost the job its nodes.
std::optional<slurm::PreflightDecision> look_around(const Node& node,
                                                    const launch::Placement& placement) {
  auto token = io::read_file(node.folder.at("token"));
  if (!token) return std::nullopt;
  const int count = static_cast<int>(placement.hosts.size());
  slurm::PreflightSettings settings{
      .nodes = placement.hosts,
      .self = placement.node_rank,
      .port = placement.port,
      .token = std::string(strip(*token)),
      .job = placement.run_id,
      .file = file_of(node),
      .size = slurm::size_in(node.options.run, count),
      .look =
          [&] {
            auto node_facts = slurm::probe_node(
                {.job_folder = node.folder.path(), .thorough = node.options.preflight == "full"});
            node_facts.image_trouble = image_trouble(node.options, launch::machine_facts());
            return node_facts;
          },
      .ask = question_of(node.options, launch::machine_facts())};
  io::Loop loop;
  // All nodes of a large job connect to the first one, and each connection needs a descriptor. Put
  // the limit back afterwards: ranks inherit it, and must get the user's own limit.
  const rlimit open_files = io::raise_open_files_limit();
  slurm::Preflight preflight(loop, std::move(settings));
  auto decision = preflight.run();
  setrlimit(RLIMIT_NOFILE, &open_files);
  if (decision && preflight.decided_here())
    for (const std::string& line : decision->lines)
      log::warning("pre-flight: {}", line);
  return decision;
}

// Writes the node's report. The batch step reads this file in place of an agent's report, and would
// otherwise count the node as lost.
void report(const Node& node, std::string_view outcome, const std::string& reason) {
  const Status kept =
      io::replace_file(node.folder.report(node.run, node.name),
                       codec::print_json(nlohmann::ordered_json{
                           {"node", node.name}, {"outcome", outcome}, {"reason", reason}}) +
                           "\n");
  if (!kept) log::error("{}", kept.error().message);
}

// Runs the pre-flight. Returns the exit code if this node takes no part; nullopt: continue.
std::optional<ExitCode> preflight(Node& node) {
  if (!node.placement) return std::nullopt;
  const launch::Placement& placement = *node.placement;
  auto decision = look_around(node, placement);
  if (!decision) return std::nullopt;
  const auto& left_out = decision->left_out;
  if (decision->ends) {
    const std::string why =
        left_out.empty() ? "" : fmt::format("{}: {}", left_out.front().node, left_out.front().why);
    report(node, slurm::kUnfit, "the pre-flight has found bad nodes: " + why);
    return passed_on(slurm::kUnfitCode);
  }
  const std::string& own = placement.hosts[static_cast<std::size_t>(placement.node_rank)];
  for (const slurm::LeftOut& each : left_out)
    if (each.node == own) {
      report(node, slurm::kLeftOut, "left out: " + each.why);
      // Success: srun exits with the highest code of all tasks, and the other nodes decide.
      return ExitCode::ok;
    }
  node.decision = std::move(*decision);
  return std::nullopt;
}

// Brings the job's wheels and puts them first on PYTHONPATH, in front of the user's own entries.
Status put_wheels(Node& node) {
  std::vector<std::string> left_out;
  for (const slurm::LeftOut& each : node.decision.left_out)
    left_out.push_back(each.node);
  LOCKSTEP_TRY_ASSIGN(jobs::on_slurm::NodeWheels wheels,
                      jobs::on_slurm::put_node_wheels(node.folder, left_out));
  // The rendezvous must not be on a node without the wheels. start_agent() drops these nodes, like
  // the nodes that the pre-flight left out.
  for (const std::string& each : wheels.failed_first)
    node.decision.left_out.push_back({each, "the job's wheels do not work there", true});
  if (wheels.paths.empty()) return {};
  const std::string own = env_text("PYTHONPATH");
  if (!own.empty()) wheels.paths.push_back(own);
  setenv("PYTHONPATH", join(wheels.paths, ":").c_str(), 1);
  return {};
}

// Gives the command the values of the row that this task of an array runs: in the script's
// arguments, and as variables. A node without a row's folder has no row.
Status take_row(Node& node) {
  const auto row = node.folder.number_of_row();
  if (!row) return {};
  LOCKSTEP_TRY_ASSIGN(const std::string csv,
                      io::read_file(node.folder.at(slurm::kRowsFile), rows::kMostFile + 1));
  LOCKSTEP_TRY_ASSIGN(const rows::Table table, rows::read_csv(csv));
  if (*row >= table.rows.size())
    return fail(Errc::corrupt, fmt::format("the job's {} has no row {}", slurm::kRowsFile, *row));
  std::vector<std::string>& run = node.options.run;
  const auto parsed = parse_options(run_table(), run,
                                    [](std::string_view) { return std::optional<std::string>(); });
  if (!parsed) return Failure(parsed.error().error);
  const std::size_t first = run.size() - std::min(run.size(), parsed->script_args.size());
  for (std::size_t i = first; i < run.size(); ++i)
    run[i] = rows::filled(run[i], table, *row);
  for (const std::string& variable : rows::row_variables(table, *row)) {
    const std::size_t equals = variable.find('=');
    setenv(variable.substr(0, equals).c_str(), variable.substr(equals + 1).c_str(), 1);
  }
  // Rows must not share a folder of logs. The last option counts, so it stands right before the
  // script.
  const launch::RawOptions raw = raw_options(run_table(), *parsed);
  if (!raw.log_dir || *raw.log_dir == "/dev/null" || first == 0) return {};
  std::size_t at = first - 1;
  if (at > 0 && run[at - 1] == "--") --at;
  run.insert(run.begin() + static_cast<std::ptrdiff_t>(at),
             fmt::format("--log-dir={}/{}", *raw.log_dir, *row));
  return {};
}

ExitCode start_agent(const Node& node) {
  std::vector<std::string> argv = {"lockstep", "run",
                                   "--report=" + node.folder.report(node.run, node.name)};
  // Every agent must get the same words, because agents that disagree about the number of nodes or
  // the endpoint do not meet. All nodes compute the words from the same decision.
  const auto words = node.placement ? slurm::words_without(node.options.run, node.placement->hosts,
                                                           node.decision, node.placement->port)
                                    : node.options.run;
  argv.insert(argv.end(), words.begin(), words.end());
  // Each agent would print the same failure report of the job, so only the first one prints it.
  if (env_text("SLURM_NODEID") != "0") argv.insert(argv.begin() + 2, "--report-tails=none");
  // Not earlier: until here a signal must end the process, in the pre-flight and in the copying of
  // wheels.
  take_signals(Signals::blocked);
  const auto code = slurm::NodeStep(node.folder.path()).run(argv);
  return code ? passed_on(*code) : refuse(kProgram, code.error(), always(ExitCode::cannot_run));
}

Result<ExitCode> node_command(const Call& call) {
  auto options = read_options(call.words);
  if (!options) return refuse(kProgram, options.error(), always(ExitCode::usage));
  // This copy of the binary was brought for this job alone. The kernel keeps an unlinked file until
  // its process ends, so nothing is left even after SIGKILL.
  if (const auto own = proc::own_executable(); own && options->drop_binary) unlink(own->c_str());
  const std::string folder = options->folder;
  Node node{.options = std::move(*options),
            .folder = slurm::JobFolder(folder),
            .run = slurm::run_number(slurm::JobFolder(folder)),
            .name = env_text("SLURMD_NODENAME"),
            .placement = find_placement()};
  LOCKSTEP_TRY(take_row(node));
  if (node.options.preflight != "off")
    if (const auto code = preflight(node)) return *code;
  LOCKSTEP_TRY(put_wheels(node));
  return start_agent(node);
}

}  // namespace

extern constinit const Subcommand kSlurmNode{.name = "slurm-node",
                                             .summary = "the start of a job on a node",
                                             .run = node_command,
                                             .signals = Signals::children,
                                             .fails_with = always(ExitCode::failed),
                                             .listed = false};

}  // namespace lockstep::cli
