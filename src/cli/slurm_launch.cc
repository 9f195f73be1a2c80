// lockstep slurm-launch: the stand-in for srun, torchrun, accelerate and deepspeed in a user's own
// batch script. Decides whether a call starts a training. If so, Lockstep's agents start the ranks;
// any other call becomes the original program. Files in the job's folder call this, people do not.
#include "base/environment.h"
#include "base/id.h"
#include "base/text.h"
#include "cli/accelerate_launch.h"
#include "cli/agents_step.h"
#include "cli/subcommand.h"
#include "codec/nodelist.h"
#include "container/enter.h"
#include "hosts/log_lines.h"
#include "io/digest.h"
#include "io/fd.h"
#include "jobs/on_slurm/job_wheels.h"
#include "launchers/accelerate_answer.h"
#include "launchers/hostfile.h"
#include "launchers/launch_words.h"
#include "proc/exec_pointers.h"
#include "proc/find_in_path.h"
#include "proc/spawn.h"
#include "proc/tool_output.h"
#include "slurm/agent_words.h"
#include "slurm/batch.h"
#include "slurm/carry.h"
#include "slurm/job_folder.h"
#include "slurm/old_environment.h"
#include "slurm/old_script.h"
#include "slurm/old_step.h"

#include <fmt/core.h>

#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

namespace lockstep::cli {
namespace {

constexpr std::size_t kMostScript = 1 << 20;
constexpr const char* kInTask = "--in-task";
constexpr const char* kInTaskAndDrop = "--in-task-and-drop";  // removes this copy of the binary

using Words = std::vector<std::string>;

void note(std::string_view program, const std::string& text) {
  std::fprintf(stderr, "lockstep: note: %.*s: %s\n", static_cast<int>(program.size()),
               program.data(), printable(text, 1000).c_str());
}

// Becomes the program. Returns only on failure. The signal mask must still be the inherited mask,
// because exec passes the mask on.
ExitCode exec_words(const Words& words) {
  const auto program = proc::find_executable(words.front(), env_text("PATH"));
  if (!program) {
    print_error("lockstep", program.error());
    return ExitCode::not_found;
  }
  execv(program->c_str(), proc::exec_pointers(words).data());
  print_error("lockstep", fail_sys("run " + *program, errno).value());
  return ExitCode::cannot_run;
}

void use_environment(const slurm::Variables& variables) {
  clearenv();
  for (const auto& [name, value] : variables)
    setenv(name.c_str(), value.c_str(), 1);
}

// Prepares this process's environment for the srun that starts the agents.
void prepare_agents_step() {
  slurm::Variables variables = slurm::variables_of(proc::own_environment());
  slurm::prepare_agents_step(variables);
  use_environment(variables);
}

// Reads a plain file only: opening a FIFO that the script named would block.
std::optional<std::string> read_script(const std::string& path) {
  struct stat info {};
  if (stat(path.c_str(), &info) != 0 || !S_ISREG(info.st_mode)) return std::nullopt;
  auto text = io::read_file(path, kMostScript);
  return text ? std::optional(std::move(*text)) : std::nullopt;
}

// Returns "lockstep slurm-node ... -- WORDS" for a node. dropped: the node removes the binary when
// the binary has started, because the copy was brought for this launch alone.
Words node_call(const std::string& binary, const slurm::JobFolder& folder, bool dropped,
                const Words& words) {
  Words call = {binary, "slurm-node", "--folder", folder.path()};
  if (dropped) call.emplace_back("--drop-binary");
  call.emplace_back("--");
  call.insert(call.end(), words.begin(), words.end());
  return call;
}

void append(Words& to, const Words& words) {
  to.insert(to.end(), words.begin(), words.end());
}

void set_all(const Words& variables) {
  for (const std::string& each : variables) {
    const std::size_t equals = each.find('=');
    setenv(each.substr(0, equals).c_str(), each.c_str() + equals + 1, 1);
  }
}

// Returns whether a launcher's words mean one node, whatever the job's size.
bool is_alone(const launchers::Launch& launch) {
  // DeepSpeed takes its nodes from a hostfile, not from a number.
  if (launch.launcher == launchers::Launcher::deepspeed) return false;
  const std::string count = launch.nodes.count.value_or("1");
  return count == "1" || count == "1:1";
}

// A call of a stand-in. words: the call of the script, beginning with the program's name.
class StandIn {
 public:
  explicit StandIn(const Words& words) : words_(words), rest_(words.begin() + 1, words.end()) {}

  Result<ExitCode> run();

 private:
  Status read_job();
  ExitCode pass(const std::string& why) const;
  Result<ExitCode> srun();
  Result<std::optional<std::string>> why_left(const launchers::Launch& launch,
                                              const std::string& program) const;
  void take_tasks(const slurm::OldStep& step, const slurm::JobFolder& folder,
                  slurm::AgentWish& agent) const;
  Result<ExitCode> launcher();
  Result<ExitCode> in_task();
  Result<launchers::Launch> read_words(const Words& words) const;
  Result<std::optional<int>> least_nodes(const launchers::Launch& launch) const;
  Result<slurm::JobFolder> make_folder() const;
  Status check_hostfile(const std::string& text) const;
  std::string binary(const slurm::JobFolder& folder) const;
  void remove_binary(const slurm::JobFolder& folder) const;
  Result<ExitCode> start(const slurm::JobFolder& folder, Words step) const;
  slurm::AgentWish wish(const slurm::JobFolder& folder) const;

  const Words& words_;
  Words rest_;
  std::string folder_;  // the job's folder
  std::string launch_;  // folder of the launch that this task belongs to; empty: the batch script
  slurm::LaunchSettings settings_;
  bool carried_ = false;  // each launch brings the binary to its nodes
  slurm::StepFacts facts_;
};

Status StandIn::read_job() {
  folder_ = env_text("LOCKSTEP_SLURM_FOLDER");
  launch_ = env_text("LOCKSTEP_SLURM_LAUNCH");
  LOCKSTEP_TRY_ASSIGN(const std::string text, io::read_file(folder_ + "/launch.json"));
  LOCKSTEP_TRY_ASSIGN(settings_, slurm::settings_from_text(text));
  carried_ = slurm::is_carried_here(settings_.carry);
  slurm::Variables variables = slurm::variables_of(proc::own_environment());
  // The script sees the list without spares, but the agents' srun needs the spares, too. Take the
  // value before hide_stand_ins() removes this variable.
  const auto all = env_variable("LOCKSTEP_SLURM_NODELIST");
  // The programs started from here must find the real srun, not this stand-in again.
  slurm::hide_stand_ins(variables);
  if (all) variables["SLURM_JOB_NODELIST"] = *all;
  use_environment(variables);
  const auto nodes = codec::expand_nodelist(env_text("SLURM_JOB_NODELIST"));
  if (!nodes) return Failure(nodes.error());
  // Keep at least one node for the training.
  facts_.spares = std::min(settings_.spares, static_cast<int>(nodes->size()) - 1);
  facts_.nodes = static_cast<int>(nodes->size()) - facts_.spares;
  facts_.variable = env_variable;
  facts_.read_file = read_script;
  return {};
}

Result<launchers::Launch> StandIn::read_words(const Words& words) const {
  const launchers::ReadOptions options{.placed_by_scheduler = true};
  LOCKSTEP_TRY_ASSIGN(launchers::Launch launch, launchers::read_launch(words, options));
  if (launch.launcher == launchers::Launcher::accelerate) return ask_accelerate(launch, options);
  return launch;
}

// Returns the fewest nodes with which the training may continue; nullopt: all nodes. Errors:
// invalid_input (the words ask for another number of nodes than the job has).
Result<std::optional<int>> StandIn::least_nodes(const launchers::Launch& launch) const {
  std::optional<int> least;
  if (settings_.min_nodes > 0) least = settings_.min_nodes;
  if (!launch.nodes.count) return least;
  const auto ends = split(*launch.nodes.count, ':');
  const auto low = parse_int(ends.front());
  const auto high = parse_int(ends.back());
  if (!low || !high || ends.size() > 2) return least;
  if (*low > facts_.nodes || (*high < facts_.nodes && *high != 1))
    return fail(Errc::invalid_input,
                fmt::format("configured for {} nodes, but the job has {}",
                            printable(*launch.nodes.count, 40), facts_.nodes),
                "make the two equal");
  if (ends.size() == 2 && *low < facts_.nodes) least = static_cast<int>(std::max<long>(*low, 1));
  return least;
}

// Makes the folder of a new launch. mkdir claims the number atomically, because a script may start
// launches at the same time (`srun ... &`).
Result<slurm::JobFolder> StandIn::make_folder() const {
  constexpr int kMost = 100'000;
  for (int i = 1; i < kMost; ++i) {
    const slurm::JobFolder folder(fmt::format("{}/launches/{}", folder_, i));
    if (mkdir(folder.path().c_str(), 0700) != 0) {
      if (errno == EEXIST) continue;
      return fail_sys("make " + folder.path(), errno);
    }
    for (const char* name : {"reports", "ranks"})
      if (mkdir(folder.at(name).c_str(), 0700) != 0)
        return fail_sys("make " + folder.at(name), errno);
    // All launches share the job's wheels and the record of the job's runs.
    for (const char* name :
         {jobs::on_slurm::kWheelsFile, jobs::on_slurm::kWheelsFolder, slurm::kRunsFolder})
      (void)symlink(fmt::format("{}/{}", folder_, name).c_str(), folder.at(name).c_str());
    LOCKSTEP_TRY(io::write_file(folder.at("token"), random_uuid4() + random_uuid4() + "\n"));
    if (chmod(folder.at("token").c_str(), 0600) != 0)
      return fail_sys("close the token's file", errno);
    return folder;
  }
  return fail(Errc::exhausted, "the job has launched too often");
}

// Returns the binary's path on the nodes of a launch. Any user may write to /tmp, so the name has a
// digest of the job's token, which other users cannot know.
std::string StandIn::binary(const slurm::JobFolder& folder) const {
  constexpr std::size_t kSecret = 12;
  if (!carried_) return folder_ + "/lockstep";
  const std::string token = io::read_file(folder.at("token")).value_or("");
  return fmt::format("/tmp/lockstep-{}-{}-{}", env_text("SLURM_JOB_ID"),
                     folder.path().substr(folder.path().rfind('/') + 1),
                     io::digest_of("lockstep binary " + token).substr(0, kSecret));
}

slurm::AgentWish StandIn::wish(const slurm::JobFolder& folder) const {
  return {.nodes = facts_.nodes,
          .min_nodes = std::nullopt,
          .spares = facts_.spares,
          .workers = 1,
          .folder = folder.path(),
          .prefix = hosts::kRankTemplate,
          .run = settings_.run};
}

// Starts the step and returns its exit code when the step has ended.
Result<ExitCode> StandIn::start(const slurm::JobFolder& folder, Words step) const {
  // Not earlier: a program that this process becomes would inherit the blocked signals.
  take_signals(Signals::blocked);
  const bool by_srun = step.front() == "srun";
  const bool carried = carried_ && by_srun;
  const auto beginning = beginning_of(step, env_variable);
  const slurm::BatchCall call{.role = slurm::BatchRole::launch,
                              .folder = folder.path(),
                              .carry = carried ? binary(folder) : "",
                              .requeue = false,
                              .step = std::move(step),
                              .beginning = beginning};
  auto code = slurm::Batch(call).run();
  // slurm-node removes the copy at its start. Only a failed step may have left copies.
  if (carried && (!code || *code != 0)) remove_binary(folder);
  return code.map(passed_on);
}

// Removes the copies of the binary, as a best effort: a lost node needs no cleanup. --overlap and
// the short patience keep this step from waiting for the job's other steps or for a lost node.
void StandIn::remove_binary(const slurm::JobFolder& folder) const {
  Words words = {"srun", "--overlap", "--quiet"};
  append(words, slurm::agent_step_options(facts_));
  append(words, {"rm", "-f", binary(folder)});
  (void)proc::tool_output(words, proc::own_environment(), {.patience = std::chrono::seconds(10)});
}

// Becomes the original program of this name. why: printed for the user; empty: nothing to say.
ExitCode StandIn::pass(const std::string& why) const {
  if (!why.empty()) note(words_.front(), "left unchanged, without Lockstep: " + why);
  return exec_words(words_);
}

// Returns why srun keeps a step that starts this launcher: the words mean less than the job.
// nullopt: the agents take the step.
Result<std::optional<std::string>> StandIn::why_left(const launchers::Launch& launch,
                                                     const std::string& program) const {
  if (launchers::is_accelerate_itself(launch)) return join(launch.notes, "; ");
  if (!is_alone(launch) || facts_.nodes <= 1) return std::nullopt;
  // With torchrun a script may mean one training for each node. accelerate's words cannot mean
  // that, so refuse the mistake instead of leaving the step to srun.
  if (launch.launcher == launchers::Launcher::accelerate)
    return fail(
        Errc::invalid_input,
        fmt::format("configured for one machine, but the job has {} nodes", facts_.nodes),
        fmt::format("write --num_machines {}; --num_processes counts the processes of all nodes",
                    facts_.nodes));
  return fmt::format("{} on each of {} nodes is configured for one node", program, facts_.nodes);
}

// Makes srun's tasks the ranks of agents, and this process's environment that of the tasks.
void StandIn::take_tasks(const slurm::OldStep& step, const slurm::JobFolder& folder,
                         slurm::AgentWish& agent) const {
  note("srun", fmt::format("{} tasks on each of {} nodes are ranks of Lockstep's agents, with "
                           "srun's environment",
                           step.tasks_per_node, facts_.nodes));
  agent.workers = step.tasks_per_node;
  // The node has unlinked a carried binary before its agent starts ranks. /proc/self/exe still
  // opens the unlinked file.
  // Nor may it have the same path in a container.
  const bool by_path = !carried_ && step.run.empty();
  append(agent.run,
         {"--no-python", "--", by_path ? binary(folder) : "/proc/self/exe", "slurm-rank", "--"});
  for (std::string word : step.words) {
    replace_all(word, "$", "$$");  // `lockstep run` replaces ${local_rank} in arguments
    agent.run.push_back(std::move(word));
  }
  slurm::Variables variables = slurm::variables_of(proc::own_environment());
  if (step.cpus_per_task) variables["SLURM_CPUS_PER_TASK"] = std::to_string(*step.cpus_per_task);
  slurm::keep_for_tasks(step.gpus_per_task, variables);
  use_environment(variables);
}

// Returns why Lockstep cannot start the container of the step; empty: Lockstep can. This node is
// one of the job's.
std::string why_only_pyxis(const slurm::OldStep& step) {
  constexpr std::string_view kImage = "--container=";
  std::error_code failed;
  const std::string folder = std::filesystem::current_path(failed);
  for (const std::string& word : step.run) {
    if (!word.starts_with(kImage)) continue;
    const std::string image = word.substr(kImage.size());
    const Status able = container::check_here(image, folder, env_text("PATH"));
    if (!able) return able.error().message;
  }
  return {};
}

// The script called srun.
Result<ExitCode> StandIn::srun() {
  const slurm::OldStep step = slurm::read_old_step(rest_, facts_);
  if (step.kind == slurm::StepKind::pass) return pass(step.why);
  if (const std::string why = why_only_pyxis(step); !why.empty()) return pass(why);
  std::optional<launchers::Launch> launch;
  std::optional<int> least;
  if (step.kind == slurm::StepKind::agents) {
    LOCKSTEP_TRY_ASSIGN(launch, read_words(step.words));
    LOCKSTEP_TRY_ASSIGN(const auto why, why_left(*launch, step.words.front()));
    if (why) return pass(*why);
    LOCKSTEP_TRY_ASSIGN(least, least_nodes(*launch));
    for (const std::string& each : launch->notes)
      note(step.words.front(), each);
  }
  LOCKSTEP_TRY_ASSIGN(const slurm::JobFolder folder, make_folder());
  Words call = {"srun"};
  append(call, step.options);
  if (step.kind == slurm::StepKind::inside) {
    // The shell runs first and may change the environment. The agent's words are known only when
    // the shell calls the launcher, see in_task().
    append(call, {binary(folder), "slurm-launch", carried_ ? kInTaskAndDrop : kInTask, folder_,
                  folder.path(), "--"});
    append(call, step.words);
    prepare_agents_step();
    return start(folder, std::move(call));
  }
  slurm::AgentWish agent = wish(folder);
  append(agent.run, step.run);
  if (step.kind == slurm::StepKind::tasks) {
    take_tasks(step, folder, agent);
  } else {
    agent.min_nodes = least;
    append(agent.run, launch->run);
    // The launcher's variables go through srun to the agents: srun exports its environment.
    set_all(launch->env);
    prepare_agents_step();
  }
  append(call, node_call(binary(folder), folder, carried_, slurm::agent_words(agent)));
  return start(folder, std::move(call));
}

Status StandIn::check_hostfile(const std::string& text) const {
  LOCKSTEP_TRY_ASSIGN(const auto hosts, launchers::parse_hostfile(text));
  if (hosts.size() == static_cast<std::size_t>(facts_.nodes)) return {};
  return fail(Errc::invalid_input,
              fmt::format("the hostfile has {} hosts, and the job has {} nodes", hosts.size(),
                          facts_.nodes),
              "write the nodes of the job there: scontrol show hostnames");
}

// Makes the launch one of this node only.
void alone(slurm::AgentWish& agent) {
  agent.nodes = 1;
  agent.spares = 0;
  agent.min_nodes = std::nullopt;
}

// The batch script called a launcher without srun: starts agents on all nodes if the launcher's
// words say so, else on this node.
Result<ExitCode> StandIn::launcher() {
  LOCKSTEP_TRY_ASSIGN(const launchers::Launch launch, read_words(words_));
  if (launchers::is_accelerate_itself(launch)) return pass(join(launch.notes, "; "));
  LOCKSTEP_TRY_ASSIGN(const auto least, least_nodes(launch));
  const std::string count = launch.nodes.count.value_or("1");
  const auto hostfile = launch.nodes.hostfile ? read_script(*launch.nodes.hostfile) : std::nullopt;
  if (hostfile) LOCKSTEP_TRY(check_hostfile(*hostfile));
  const bool many = facts_.nodes > 1 && (count != "1" || hostfile);
  for (const std::string& each : launch.notes)
    note(words_.front(), each);
  if (many) note(words_.front(), fmt::format("started on all {} nodes", facts_.nodes));
  LOCKSTEP_TRY_ASSIGN(const slurm::JobFolder folder, make_folder());
  set_all(launch.env);
  slurm::AgentWish agent = wish(folder);
  agent.min_nodes = least;
  append(agent.run, launch.run);
  Words call;
  // slurm-node brings the wheels, and only srun starts slurm-node.
  const bool with_wheels = access(folder.at(jobs::on_slurm::kWheelsFile).c_str(), F_OK) == 0;
  if (many || with_wheels || (facts_.nodes == 1 && facts_.spares > 0)) {
    call = {"srun"};
    const bool on_one = !many && facts_.nodes > 1;
    if (on_one) {
      alone(agent);
      // This node sees the binary in the job's folder. sbcast would copy the binary to all nodes,
      // and the nodes that take no part would never remove their copies.
      carried_ = false;
    }
    append(call, slurm::agent_step_options(facts_, on_one));
    append(call, node_call(binary(folder), folder, carried_, slurm::agent_words(agent)));
    prepare_agents_step();
    return start(folder, std::move(call));
  }
  // Start the agent without srun, so that the ranks get the batch script's environment.
  alone(agent);
  const int run = slurm::run_number(folder);
  const std::string node = env_text("SLURMD_NODENAME");
  call = {folder_ + "/lockstep", "run", "--report=" + folder.report(run, node)};
  append(call, slurm::agent_words(agent));
  return start(folder, std::move(call));
}

// The shell of a task called the launcher: this process becomes the node's agent.
Result<ExitCode> StandIn::in_task() {
  const auto kind = launchers::launcher_of(words_);
  if (kind == launchers::Launcher::none) return exec_words(words_);
  LOCKSTEP_TRY_ASSIGN(const launchers::Launch launch, read_words(words_));
  if (launch.launcher == launchers::Launcher::python) return exec_words(words_);
  // Every node comes here with the same words. Only the first one prints the notes.
  const bool speaks = env_variable("SLURM_NODEID") == "0";
  if (launchers::is_accelerate_itself(launch)) return pass(speaks ? join(launch.notes, "; ") : "");
  if (is_alone(launch) && facts_.nodes > 1)
    return pass(
        speaks ? fmt::format("configured for one node, and runs on each of {}", facts_.nodes) : "");
  LOCKSTEP_TRY_ASSIGN(const auto least, least_nodes(launch));
  if (speaks)
    for (const std::string& each : launch.notes)
      note(words_.front(), each);
  set_all(launch.env);
  const slurm::JobFolder folder(launch_);
  slurm::AgentWish agent = wish(folder);
  agent.min_nodes = least;
  append(agent.run, launch.run);
  return exec_words(node_call(folder_ + "/lockstep", folder, false, slurm::agent_words(agent)));
}

Result<ExitCode> StandIn::run() {
  // Outside of the job, run the real program. A job that the script submits inherits these
  // variables, but has another number.
  if (!env_variable("LOCKSTEP_SLURM_FOLDER") ||
      env_variable("LOCKSTEP_SLURM_JOB") != env_variable("SLURM_JOB_ID")) {
    slurm::Variables variables = slurm::variables_of(proc::own_environment());
    slurm::hide_stand_ins(variables);
    use_environment(variables);
    return exec_words(words_);
  }
  LOCKSTEP_TRY(read_job());
  if (!launch_.empty()) return in_task();
  return words_.front() == "srun" ? srun() : launcher();
}

// Runs "--in-task JOB LAUNCH -- WORDS" as a task on each node: becomes the words' program, with the
// stand-ins for tasks in PATH. JOB and LAUNCH are folders.
ExitCode begin_task(const Words& words) {
  if (const auto own = proc::own_executable(); own && words[0] == kInTaskAndDrop)
    unlink(own->c_str());
  slurm::Variables variables = slurm::variables_of(proc::own_environment());
  // srun counts the spares in the variables of its tasks. The user's shell must not see the spares.
  const auto settings =
      io::read_file(words[1] + "/launch.json").and_then(slurm::settings_from_text);
  const auto nodes = codec::expand_nodelist(variables["SLURM_JOB_NODELIST"]);
  if (settings && nodes) slurm::hide_spares(*nodes, settings->spares, variables);
  slurm::show_stand_ins(words[1], "task-bin", variables);
  variables["LOCKSTEP_SLURM_LAUNCH"] = words[2];
  use_environment(variables);
  return exec_words({words.begin() + 4, words.end()});
}

Result<ExitCode> launch_command(const Call& call) {
  if (call.words.size() > 4 && (call.words[0] == kInTask || call.words[0] == kInTaskAndDrop) &&
      call.words[3] == "--")
    return begin_task(call.words);
  if (call.words.empty())
    return fail(Errc::invalid_input, "this is an internal command, called by a job's script");
  const auto code = StandIn(call.words).run();
  // Print errors under the name that the script called. The user does not know slurm-launch.
  return code ? *code : refuse(call.words.front(), code.error());
}

}  // namespace

extern constinit const Subcommand kSlurmLaunch{.name = "slurm-launch",
                                               .summary = "a launch inside of a job's batch script",
                                               .run = launch_command,
                                               .listed = false};

}  // namespace lockstep::cli
