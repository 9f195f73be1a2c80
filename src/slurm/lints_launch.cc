// Lints for the way in which a script starts its ranks.
#include "base/text.h"
#include "slurm/lint_rows.h"

#include <fmt/core.h>

#include <algorithm>
#include <set>

namespace lockstep::slurm {
namespace {

bool is_launcher(const LaunchLine& launch) {
  return launch.launcher != Launcher::python;
}

std::string_view name_of(Launcher launcher) {
  switch (launcher) {
    case Launcher::python:
      return "python";
    case Launcher::torchrun:
      return "torchrun";
    case Launcher::accelerate:
      return "accelerate launch";
    case Launcher::deepspeed:
      return "deepspeed";
    case Launcher::lockstep:
      return "lockstep run";
  }
  return "";
}

// Returns whether srun starts the ranks without a launcher: several tasks of one Python program.
bool is_plain_ranks(const JobScript& script, const LaunchLine& launch) {
  const int nodes = nodes_of(script).value_or(1);
  const auto each = tasks_per_node(script, &launch);
  return launch.by_srun && !is_launcher(launch) && each && (*each > 1 || nodes > 1) &&
         !program_of(launch).name.empty();
}

bool is_variable_set(const JobScript& script, std::string_view name) {
  return script.variables.contains(name);
}

// Returns whether a variable differs from task to task. In the script itself such a variable has
// the first task's value.
bool differs_by_task(std::string_view name) {
  return name == "SLURM_PROCID" || name == "SLURM_NODEID" || name == "SLURM_LOCALID" ||
         name == "SLURMD_NODENAME";
}

// Returns a variable that the script expands before srun starts the tasks; empty: none.
std::string expanded_too_early(const std::vector<std::string>& words) {
  for (const std::string& word : words)
    for (std::string& name : expanded_variables(word))
      if (differs_by_task(name)) return std::move(name);
  return {};
}

// Returns a step's words after removing the words that Lockstep drops from launches: the node's
// rank, as a separate word or inside bash -c.
std::vector<std::string> words_that_stay(const LaunchLine& launch, const CheckFacts& facts) {
  if (!facts.lockstep_launches || !is_launcher(launch)) return launch.step_words;
  constexpr int kMost = 100;  // bounds the loop; a step has one
  std::string text = join(launch.step_words, "\n");
  for (const std::string_view option :
       {"--node_rank", "--node-rank", "--machine_rank", "--machine-rank"})
    for (int i = 0; i < kMost; ++i) {
      const std::size_t at = text.find(option);
      if (at == std::string::npos) break;
      const std::size_t value = text.find_first_not_of("= \n", at + option.size());
      const std::size_t end = text.find_first_of(" \n", std::min(value, text.size()));
      text.erase(at, end == std::string::npos ? end : end - at);
    }
  return split(text, '\n');
}

// Returns whether srun of this version ignores the job's --cpus-per-task: 22.05 and 23.02.
bool loses_cpus_per_task(std::string_view version) {
  return version.starts_with("22.05") || version.starts_with("23.02");
}

// Checks torchrun's words about nodes. If torchrun is told of one node, Lockstep leaves the launch
// alone, too. In other launches Lockstep drops words that do not fit.
void look_at_torchrun(const JobScript& script, const LaunchLine& launch, bool by_lockstep,
                      Findings& found) {
  const auto backend = option_of(launch.words, {"--rdzv_backend"});
  const bool has_rank = has_option(launch.words, {"--node_rank"});
  const int nodes = nodes_of(script).value_or(1);
  if (backend && *backend == "c10d" && has_rank && !by_lockstep)
    return found.add(Severity::warning, launch.line, "--node_rank goes with --rdzv_backend=c10d",
                     "torchrun ignores it: c10d gives out the ranks itself",
                     "leave out --node_rank");
  if (nodes < 2 || !launch.by_srun || tasks_per_node(script, &launch).value_or(2) > 1) return;
  const auto wanted = option_of(launch.words, {"--nnodes"});
  if (has_option(launch.words, {"--standalone"}) || !wanted || *wanted == "1")
    return found.add(by_lockstep ? Severity::warning : Severity::error, launch.line,
                     fmt::format("torchrun on {} nodes is told of one", nodes),
                     "every node trains alone, with a world of its own",
                     fmt::format("write --nnodes={}", nodes));
  const bool is_static = !backend || *backend == "static";
  if (is_static && !has_rank && *wanted != "1" && !by_lockstep)
    found.add(launch.line, "torchrun without --node_rank",
              "with the static backend each node takes itself for node 0",
              "write --rdzv_backend=c10d --rdzv_endpoint=HOST:PORT instead of --master_addr");
}

// Returns whether the script changes its folder or creates files before the launch. Relative paths
// cannot be checked then.
bool moves_about(const JobScript& script) {
  static const std::set<std::string_view> kMovers = {"cd",    "pushd", "cp",    "mv",   "ln",
                                                     "rsync", "tar",   "unzip", "git",  "wget",
                                                     "curl",  "scp",   "ssh",   "make", "sbcast"};
  const auto moves = [](const std::string& word) {
    return kMovers.contains(base_name(word)) || word.find("cd ") != std::string::npos;
  };
  return std::any_of(script.commands.begin(), script.commands.end(), [&](const ShellCommand& each) {
    return !each.outputs.empty() || std::any_of(each.words.begin(), each.words.end(), moves);
  });
}

}  // namespace

// In the batch script SLURM_PROCID and SLURM_NODEID are 0 on every node, so each node becomes node
// 0 (accelerate#2816).
void look_rank_too_early(const JobScript& script, const CheckFacts& facts, Findings& found) {
  const bool alone = nodes_of(script).value_or(1) == 1 && tasks_per_node(script).value_or(2) == 1;
  for (const LaunchLine& each : script.launches) {
    if (!each.by_srun || alone) continue;
    const auto words = words_that_stay(each, facts);
    const std::string name = expanded_too_early(words);
    if (!name.empty()) {
      found.add(each.line, fmt::format("${} is expanded here, before srun starts the tasks", name),
                "every task gets the value of the first one",
                fmt::format("let a shell of the task expand it: srun bash -c '... ${} ...'", name));
      continue;
    }
    // $(hostname) is right for the address of the first node, and wrong for a node's own name.
    for (const std::string_view option : {"--local_addr", "--node_rank", "--machine_rank"})
      if (const auto value = option_of(words, {option}))
        for (const std::string& command : expanded_commands(*value))
          if (command.starts_with("hostname"))
            found.add(each.line,
                      fmt::format("$(hostname) behind {} is run here, before srun starts the tasks",
                                  option),
                      "every task gets the name of the first node",
                      "let a shell of the task run it: srun bash -c '...'");
  }
  if (alone) return;
  // Other exported variables may be for the first node only, such as addresses.
  static const std::set<std::string_view> kRanks = {"RANK", "LOCAL_RANK", "NODE_RANK", "GROUP_RANK",
                                                    "MACHINE_RANK"};
  for (const auto& [name, variable] : script.variables) {
    const std::string early = expanded_too_early({variable.value});
    if (!variable.exported || early.empty() || !kRanks.contains(name)) continue;
    const int line = variable.line;
    if (std::any_of(script.launches.begin(), script.launches.end(),
                    [line](const LaunchLine& each) { return each.by_srun && each.line > line; }))
      found.add(line, fmt::format("{}=${} is exported by the script", name, early),
                "every task inherits the value of the first one",
                fmt::format("set it in the task: srun bash -c '{}=${} ...'", name, early));
  }
}

// Each task would start a launcher, and each launcher all ranks of the node.
void look_tasks_and_launcher(const JobScript& script, const CheckFacts& /*facts*/,
                             Findings& found) {
  for (const LaunchLine& each : script.launches) {
    const auto tasks = tasks_per_node(script, &each);
    if (!each.by_srun || !is_launcher(each) || !tasks || *tasks < 2) continue;
    found.add(each.line, fmt::format("{} tasks on a node run '{}'", *tasks, name_of(each.launcher)),
              "each of them starts all ranks of the node",
              "write --ntasks-per-node=1, and --cpus-per-task for the whole node");
  }
}

// The batch script's own `python` is the real one, because `which python` must say where it is.
void look_unwatched(const JobScript& script, const CheckFacts& facts, Findings& found) {
  if (!facts.lockstep_launches) return;
  for (const LaunchLine& each : script.launches)
    if (!each.by_srun && !each.in_container && is_launcher(each) &&
        base_name(each.program).starts_with("python"))
      found.add(each.line, "python -m starts the ranks without srun",
                "Lockstep does not see it, so it watches and restarts nothing",
                "write torchrun in its place, or srun in front");
  for (const ShellCommand& each : script.commands)
    if (!each.words.empty() &&
        (base_name(each.words.front()) == "mpirun" || base_name(each.words.front()) == "mpiexec"))
      found.add(each.line, fmt::format("{} starts the ranks itself", base_name(each.words.front())),
                "Lockstep does not see them, so it watches and restarts nothing",
                "write srun in its place");
}

// More ranks than GPUs is an error, fewer is a waste.
void look_gpu_count(const JobScript& script, const CheckFacts& /*facts*/, Findings& found) {
  const auto gpus = gpus_per_node(script);
  if (!gpus) return;
  const int nodes = nodes_of(script).value_or(1);
  for (const LaunchLine& each : script.launches) {
    std::optional<int> ranks;
    if (each.launcher == Launcher::torchrun || each.launcher == Launcher::lockstep)
      ranks = number_option(each.words, {"--nproc_per_node", "--nproc-per-node"});
    if (each.launcher == Launcher::deepspeed) ranks = number_option(each.words, {"--num_gpus"});
    if (each.launcher == Launcher::accelerate) {
      const auto all = number_option(each.words, {"--num_processes"});
      const int machines = number_option(each.words, {"--num_machines"}).value_or(nodes);
      if (all && machines > 0 && *all % machines == 0) ranks = *all / machines;
    }
    if (!ranks || *ranks == *gpus) continue;
    const bool more = *ranks > *gpus;
    found.add(more ? Severity::error : Severity::warning, each.line,
              fmt::format("{} rank{} on a node that has {} GPU{} for the job", *ranks,
                          *ranks == 1 ? "" : "s", *gpus, *gpus == 1 ? "" : "s"),
              more ? "ranks without a GPU end with 'invalid device ordinal'"
                   : "GPUs are paid for and idle",
              "make the ranks per node equal to --gres or --gpus-per-node");
  }
}

// A task that sees a single GPU as number 0 fails with its local rank as device, and NCCL cannot
// use NVLink between such tasks (nccl#1948).
void look_gpus_per_task(const JobScript& script, const CheckFacts& /*facts*/, Findings& found) {
  for (const LaunchLine& each : script.launches) {
    const Setting* option = find_setting(each.srun, "gpus-per-task");
    const bool of_step = option != nullptr;
    if (!of_step) option = setting(script, "gpus-per-task");
    // One task per node sees all GPUs of the node.
    if (option == nullptr || !each.by_srun || tasks_per_node(script, &each).value_or(2) < 2)
      continue;
    return found.add(of_step ? each.line : option->line,
                     fmt::format("--gpus-per-task={} with several tasks on a node", option->value),
                     "each task sees its GPU as number 0 only: 'invalid device ordinal', and NCCL "
                     "cannot use NVLink",
                     "write --gpus-per-node=N, and choose the GPU by SLURM_LOCALID");
  }
}

// 22.05 to 23.02 dropped the inheritance of --cpus-per-task, so a task gets one CPU
// (Lightning#18650).
void look_srun_cpus(const JobScript& script, const CheckFacts& facts, Findings& found) {
  const Setting* cpus = setting(script, "cpus-per-task");
  if (cpus == nullptr || cpus->value == "1" || !loses_cpus_per_task(facts.slurm_version)) return;
  if (is_variable_set(script, "SRUN_CPUS_PER_TASK")) return;
  for (const LaunchLine& each : script.launches)
    if (each.by_srun && tasks_per_node(script, &each).value_or(2) > 1 &&
        find_setting(each.srun, "cpus-per-task") == nullptr)
      return found.add(
          each.line, fmt::format("srun without --cpus-per-task on Slurm {}", facts.slurm_version),
          fmt::format("srun does not inherit --cpus-per-task={}: each task has one CPU",
                      cpus->value),
          "write srun --cpus-per-task=$SLURM_CPUS_PER_TASK");
}

// --unbuffered passes partial lines on, and the lines of several tasks mix.
void look_torn_logs(const JobScript& script, const CheckFacts& /*facts*/, Findings& found) {
  for (const LaunchLine& each : script.launches) {
    const Setting* own = find_setting(each.srun, "output");
    const bool own_files = own != nullptr && (own->value.find("%t") != std::string::npos ||
                                              own->value.find("%n") != std::string::npos);
    const bool several =
        nodes_of(script).value_or(1) > 1 || tasks_per_node(script, &each).value_or(2) > 1;
    if (several && !own_files && find_setting(each.srun, "unbuffered") != nullptr)
      found.add(each.line, "srun --unbuffered with several tasks in one log",
                "lines of different tasks are torn into one another",
                "write PYTHONUNBUFFERED=1 instead, or --output=FILE-%t.log");
  }
}

// Ranks in a collective operation wait for a dead peer without end, and srun waits for the ranks.
void look_kill_on_bad_exit(const JobScript& script, const CheckFacts& /*facts*/, Findings& found) {
  if (is_variable_set(script, "SLURM_KILL_BAD_EXIT") || is_variable_set(script, "SLURM_WAIT"))
    return;
  for (const LaunchLine& each : script.launches)
    if (is_plain_ranks(script, each) && find_setting(each.srun, "kill-on-bad-exit") == nullptr &&
        find_setting(each.srun, "wait") == nullptr)
      found.add(each.line, "srun without --kill-on-bad-exit",
                "when a rank dies, other ranks wait until the time limit",
                "write srun --kill-on-bad-exit=1");
}

void look_node_rank(const JobScript& script, const CheckFacts& facts, Findings& found) {
  for (const LaunchLine& each : script.launches)
    if (each.launcher == Launcher::torchrun)
      look_at_torchrun(script, each, facts.lockstep_launches, found);
}

// A relative path starts in the folder of submission. Scripts that change folders or make files are
// not judged.
void look_script_missing(const JobScript& script, const CheckFacts& facts, Findings& found) {
  if (!facts.is_file || moves_about(script)) return;
  const Setting* chdir = setting(script, "chdir");
  if (chdir != nullptr && !is_known(chdir->value)) return;
  const std::string folder = chdir == nullptr ? "" : chdir->value + "/";
  for (const LaunchLine& each : script.launches) {
    const auto config =
        option_of(each.words, {"--deepspeed", "--deepspeed_config", "--deepspeed_config_file"});
    if (config && config->ends_with(".json") && config->find_first_of("/ ~") != 0 &&
        is_known(*config) && !each.in_container && !facts.is_file(folder + *config))
      found.add(script.commands.empty() ? Severity::error : Severity::warning, each.line,
                fmt::format("{} is not there", printable(folder + *config, 80)),
                "every rank reads DeepSpeed's settings there, and fails at once",
                "correct the path, or hand the job in from the project's folder");
    const std::string name = program_of(each).name;
    // A name without .py is a module. Absolute paths may exist on the nodes only.
    if (!name.ends_with(".py") || name.find_first_of("/ ~") == 0 || name.find(' ') != name.npos ||
        !is_known(name) || each.in_container)
      continue;
    if (facts.is_file(folder + name)) continue;
    found.add(script.commands.empty() ? Severity::error : Severity::warning, each.line,
              fmt::format("{} is not there", printable(folder + name, 80)),
              "the job starts in the folder where it is handed in, and ends at once",
              "correct the path, or hand it in from the project's folder");
  }
}

}  // namespace lockstep::slurm
