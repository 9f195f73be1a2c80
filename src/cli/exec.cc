// lockstep exec: runs a command on hosts over SSH.
#include "base/log.h"
#include "base/text.h"
#include "cli/exec_json.h"
#include "cli/exec_options.h"
#include "cli/places.h"
#include "cli/subcommand.h"
#include "codec/json_members.h"
#include "hosts/command_run.h"
#include "hosts/registry.h"
#include "hosts/variables.h"
#include "io/own_folders.h"
#include "job/enter_job.h"
#include "job/job_spec.h"
#include "jobs/here/local_job.h"
#include "jobs/job_rows.h"
#include "jobs/on_slurm/slurm_submit.h"
#include "jobs/places/find_job.h"
#include "slurm/job_report.h"

#include <fmt/core.h>

#include <cstdio>
#include <optional>
#include <utility>
#include <vector>

namespace lockstep::cli {
namespace {

// Finds the job that the word names exactly. A job's name is not asked for: the same word may be
// the name of a host. nullopt: the word is a cluster or a host.
Result<std::optional<jobs::KnownJob>> find_named_job(const std::string& word) {
  const bool may_be_job =
      jobs::here::is_local_id(word) || job::is_job_id(word) || slurm::is_job_id(word);
  if (!may_be_job) return std::nullopt;
  LOCKSTEP_TRY_ASSIGN(const auto registry, hosts::Registry::open(io::state_folder()));
  if (registry.find(word)) return std::nullopt;
  LOCKSTEP_TRY_ASSIGN(const auto book, jobs::JobBook::open_to_look(io::state_folder()));
  return jobs::places::find_by_id(book, word);
}

// A job, or a row of a sweep and the node that runs it.
struct Aim {
  jobs::KnownJob job;
  std::string row = {};  // "[12]"; empty: the whole job
  std::string node = {};
};

// Refuses a job whose ranks only another host reaches. word: names the job, or a row.
Status check_reached_here(const jobs::KnownJob& job, const std::string& word) {
  const std::string owner = jobs::places::open_job(job)->facts().owner;
  if (owner.empty()) return {};
  return fail(Errc::invalid_input,
              fmt::format("only {} reaches the ranks of {}", printable(owner), job.id),
              fmt::format("on {}: lockstep exec {} -- COMMAND", printable(owner), word));
}

// Finds the row of a word like "trial[12]". nullopt: the word has no row.
Result<std::optional<Aim>> find_named_row(const std::string& word) {
  const auto named = jobs::read_row_word(word);
  if (!named) return std::optional<Aim>();
  // An address of a host: me@[::1] or ssh://[::1].
  if (named->job.ends_with('@') || named->job.ends_with('/')) return std::optional<Aim>();
  LOCKSTEP_TRY_ASSIGN(const auto book, jobs::JobBook::open_to_look(io::state_folder()));
  LOCKSTEP_TRY_ASSIGN(const auto job, jobs::places::find_running_job(
                                          book, named->job, jobs::places::Several::refuse));
  LOCKSTEP_TRY(check_reached_here(job, fmt::format("'{}[{}]'", job.id, printable(named->row))));
  LOCKSTEP_TRY_ASSIGN(const auto sweep, jobs::sweep_of(job));
  if (!sweep || job.nodes.empty() || jobs::on_slurm::slurm_place(job))
    return fail(Errc::invalid_input, fmt::format("job {} is not a sweep on hosts", job.id),
                fmt::format("lockstep exec {} enters the job", job.id));
  LOCKSTEP_TRY_ASSIGN(const std::size_t row, jobs::find_row(*sweep, named->row));
  LOCKSTEP_TRY_ASSIGN(const auto said, jobs::places::open_job(job)->why());
  for (const auto& known : said.json["rows"]) {
    if (codec::integer_member(known, "row") != static_cast<std::int64_t>(row)) continue;
    const std::string state = codec::text_member(known, "state");
    if (state != "running")
      return fail(Errc::unavailable, fmt::format("row {} of job {} is {}", row, job.id, state),
                  fmt::format("lockstep logs '{}[{}]' shows its output", job.id, row));
    for (std::size_t node = 0; node < job.nodes.size(); ++node)
      if (job.nodes[node].name == codec::text_member(known, "host"))
        return std::optional(Aim{job, fmt::format("[{}]", row), std::to_string(node)});
  }
  return fail(Errc::unavailable,
              fmt::format("no host reports that row {} of job {} runs", row, job.id),
              fmt::format("lockstep why {} shows which hosts answer", job.id));
}

// Lets the hosts of the job run the command in the job.
Status aim_at_job(const Aim& aim, const ExecOptions& options, hosts::CommandRequest& request) {
  const jobs::KnownJob& job = aim.job;
  const PlaceOptions& places = options.places;
  LOCKSTEP_TRY(check_reached_here(job, job.id));
  if (options.in_project || places.user || places.key_path || places.jump)
    return fail(Errc::invalid_input,
                fmt::format("{} is a job, which has its own hosts and environment",
                            printable(options.where)),
                "leave out --in-project, --user, --key-path and --jump");
  const bool on_slurm = jobs::on_slurm::slurm_place(job).has_value();
  if (places.nodes && (on_slurm || job.nodes.empty()))
    return fail(Errc::invalid_input, "--nodes chooses nodes of a cluster, or of a job on hosts");
  if (places.nodes && !aim.node.empty())
    return fail(Errc::invalid_input, "a row runs on one node", "leave out --nodes");
  const std::string nodes = aim.node.empty() ? places.nodes.value_or("all") : aim.node;
  LOCKSTEP_TRY_ASSIGN(const auto chosen, hosts::parse_node_numbers(nodes, job.nodes.size()));
  for (const std::size_t node : chosen)
    request.hosts.push_back(job.nodes[node]);
  if (job.nodes.empty())
    request.hosts.push_back({.name = std::string(hosts::kHere), .target = {}, .here = true});
  std::vector<std::string> names;
  for (std::string& entry : request.env) {
    names.push_back(entry.substr(0, entry.find('=')));
    entry.insert(0, job::kEnterPrefix);
  }
  request.argv = job::enter_words({.job = job.id + aim.row,
                                   .folder = options.folder.value_or(""),
                                   .named = std::move(names),
                                   .command = options.command});
  request.argv.insert(request.argv.begin(), "host-enter");
  request.own_binary = true;
  return {};
}

Status aim_at_hosts(const ExecOptions& options, hosts::CommandRequest& request) {
  LOCKSTEP_TRY_ASSIGN(request.hosts, places_of(options.where, options.places));
  request.argv = options.command;
  // `lockstep in-project COMMAND` on the host sets the environment and becomes the command.
  if (options.in_project) {
    request.argv.insert(request.argv.begin(), "in-project");
    request.own_binary = true;
  }
  request.folder = options.folder.value_or("");
  return {};
}

Result<ExitCode> exec_command(const Call& call) {
  LOCKSTEP_TRY_ASSIGN(const ExecOptions options, exec_options(call.words, call.parsed));
  hosts::CommandRequest request;
  LOCKSTEP_TRY_ASSIGN(request.env, hosts::variables_of({.env = options.variables.env,
                                                        .files = options.variables.env_files,
                                                        .secrets = options.variables.secrets},
                                                       hosts::own_variable));
  LOCKSTEP_TRY_ASSIGN(auto aim, find_named_row(options.where));
  LOCKSTEP_TRY_ASSIGN(const auto job, find_named_job(options.where));
  if (!aim && job) aim = Aim{*job};
  LOCKSTEP_TRY(aim ? aim_at_job(*aim, options, request) : aim_at_hosts(options, request));
  if (options.no_input) request.input = hosts::CommandRequest::Input::none;
  if (options.json) request.output = hosts::CommandRequest::Output::keep;
  LOCKSTEP_TRY_ASSIGN(const auto endings, hosts::run_command(request));
  if (options.json) {
    std::puts(codec::print_json(exec_json(request.hosts, endings)).c_str());
    return passed_on(hosts::code_of(endings));
  }
  // The command's output has been printed as it came. Only errors of hosts are left to print.
  for (const hosts::HostEnding& ending : endings)
    if (!ending.error.empty())
      print_error(
          exec_table().program,
          {Errc::unavailable, ending.error,
           passed_on(ending.code) == ExitCode::not_found ? shell_hint(options) : std::string(), 0});
  return passed_on(hosts::code_of(endings));
}

}  // namespace

extern constinit const Subcommand kExec{.name = "exec",
                                        .summary = "run a command on hosts over SSH",
                                        .table = exec_table,
                                        .run = exec_command,
                                        .signals = Signals::blocked,
                                        .fails_with = kAsSsh};

}  // namespace lockstep::cli
