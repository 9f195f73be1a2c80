#include "slurm/old_environment.h"

#include "base/text.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <optional>

namespace lockstep::slurm {
namespace {

// Prefix of saved variables.
constexpr std::string_view kKept = "LOCKSTEP_TASK_";
constexpr std::string_view kGpus = "LOCKSTEP_TASK_GPUS";
constexpr std::string_view kBin = "LOCKSTEP_SLURM_BIN";
constexpr std::string_view kAllNodes = "LOCKSTEP_SLURM_NODELIST";
constexpr std::size_t kMostNodes = 1 << 16;

// Variables that `lockstep run` sets for workers, and srun does not set for tasks.
constexpr auto kOfWorkers = std::to_array<std::string_view>({
    "RANK",
    "LOCAL_RANK",
    "WORLD_SIZE",
    "LOCAL_WORLD_SIZE",
    "GROUP_RANK",
    "GROUP_WORLD_SIZE",
    "ROLE_NAME",
    "ROLE_RANK",
    "ROLE_WORLD_SIZE",
    "MASTER_ADDR",
    "MASTER_PORT",
    "OMP_NUM_THREADS",
    "PYTHONUNBUFFERED",
    "TORCHELASTIC_ERROR_FILE",
    "TORCHELASTIC_RESTART_COUNT",
    "TORCHELASTIC_MAX_RESTARTS",
    "TORCHELASTIC_RUN_ID",
    "TORCHELASTIC_USE_AGENT_STORE",
    "TORCHELASTIC_SIGNALS_TO_HANDLE",
    "TORCH_NCCL_ASYNC_ERROR_HANDLING",
});
// Variables that srun sets differently for an agent than for a task.
constexpr auto kOfTasks = std::to_array<std::string_view>(
    {"SLURM_CPUS_PER_TASK", "SLURM_GPUS_PER_TASK", "SLURM_TRES_PER_TASK", "SLURM_TRES_BIND",
     "SLURM_NTASKS_PER_NODE", "SLURM_CPU_BIND", "SLURM_KILL_BAD_EXIT", "SLURM_NO_KILL"});

std::optional<std::string> find(const Variables& variables, std::string_view name) {
  const auto found = variables.find(name);
  return found == variables.end() ? std::nullopt : std::optional(found->second);
}

void set(Variables& variables, std::string_view name, std::string value) {
  variables.insert_or_assign(std::string(name), std::move(value));
}

void remove(Variables& variables, std::string_view name) {
  if (const auto found = variables.find(name); found != variables.end()) variables.erase(found);
}

// Changes a variable only if Slurm has set it.
void replace(Variables& variables, std::string_view name, const std::string& value) {
  if (variables.contains(name)) set(variables, name, value);
}

// Expands Slurm's compressed counts: "4(x2),1" -> 4, 4, 1. Returns an empty list for any other
// text.
std::vector<std::string> expand_counts(std::string_view text) {
  std::vector<std::string> counts;
  for (const std::string& part : split(text, ',')) {
    const std::size_t bracket = part.find("(x");
    std::int64_t times = 1;
    if (bracket != std::string::npos) {
      if (!part.ends_with(')')) return {};
      times = parse_int(part.substr(bracket + 2, part.size() - bracket - 3)).value_or(0);
    }
    if (times < 1 || counts.size() + static_cast<std::size_t>(times) > kMostNodes) return {};
    counts.insert(counts.end(), static_cast<std::size_t>(times), part.substr(0, bracket));
  }
  return counts;
}

// Compresses counts again.
std::string print_counts(const std::vector<std::string>& counts) {
  std::vector<std::string> parts;
  for (std::size_t i = 0, end = 0; i < counts.size(); i = end) {
    while (end < counts.size() && counts[end] == counts[i])
      ++end;
    parts.push_back(end - i == 1 ? counts[i] : fmt::format("{}(x{})", counts[i], end - i));
  }
  return join(parts, ",");
}

// Returns the devices of the task with this local rank: `each` devices of the node's list.
std::string devices_of(std::string_view list, std::int64_t local_rank, std::int64_t each) {
  const auto devices = split(list, ',');
  const auto from = static_cast<std::size_t>(local_rank * each);
  // Too few devices for this rank: better the whole list than none.
  if (from + static_cast<std::size_t>(each) > devices.size()) return std::string(list);
  return join(std::span(devices).subspan(from, static_cast<std::size_t>(each)), ",");
}

}  // namespace

Variables variables_of(const std::vector<std::string>& environment) {
  Variables variables;
  for (const std::string& each : environment)
    if (const std::size_t equals = each.find('='); equals != std::string::npos)
      variables.try_emplace(each.substr(0, equals), each.substr(equals + 1));
  return variables;
}

std::vector<std::string> environment_of(const Variables& variables) {
  std::vector<std::string> environment;
  environment.reserve(variables.size());
  for (const auto& [name, value] : variables)
    environment.push_back(fmt::format("{}={}", name, value));
  return environment;
}

void hide_spares(const std::vector<std::string>& nodes, int spares, Variables& variables) {
  if (spares < 1 || nodes.size() <= static_cast<std::size_t>(spares)) return;
  const std::size_t count = nodes.size() - static_cast<std::size_t>(spares);
  set(variables, kAllNodes, join(nodes, ","));
  const std::string list = join(std::span(nodes).first(count), ",");
  for (const char* name : {"SLURM_JOB_NODELIST", "SLURM_NODELIST"})
    replace(variables, name, list);
  for (const char* name : {"SLURM_NNODES", "SLURM_JOB_NUM_NODES"})
    replace(variables, name, std::to_string(count));
  for (const char* name : {"SLURM_TASKS_PER_NODE", "SLURM_JOB_CPUS_PER_NODE"}) {
    auto counts = expand_counts(find(variables, name).value_or(""));
    if (counts.size() != nodes.size()) continue;
    counts.resize(count);
    set(variables, name, print_counts(counts));
  }
  for (const char* name : {"SLURM_NTASKS", "SLURM_NPROCS", "SLURM_GPUS"}) {
    // The value may have a type, as in SLURM_GPUS=a100:16.
    const std::string text = find(variables, name).value_or("");
    const std::string kind = text.substr(0, text.find_last_of(":=") + 1);
    const auto all = parse_int(text.substr(kind.size()));
    const auto had = static_cast<std::int64_t>(nodes.size());
    if (all && *all % had == 0)
      set(variables, name, kind + std::to_string(*all / had * static_cast<std::int64_t>(count)));
  }
}

void show_stand_ins(std::string_view folder, std::string_view subfolder, Variables& variables) {
  const std::string bin = fmt::format("{}/{}", folder, subfolder);
  set(variables, "LOCKSTEP_SLURM_FOLDER", std::string(folder));
  set(variables, "LOCKSTEP_SLURM_JOB", find(variables, "SLURM_JOB_ID").value_or(""));
  set(variables, kBin, bin);
  set(variables, "PATH", fmt::format("{}:{}", bin, find(variables, "PATH").value_or("")));
  // bash reads the file in BASH_ENV first in every script, so PATH stays right in scripts that the
  // job's script starts. The user's own BASH_ENV is read from there.
  if (const auto own = find(variables, "BASH_ENV")) set(variables, "LOCKSTEP_BASH_ENV", *own);
  set(variables, "BASH_ENV", fmt::format("{}/shell", folder));
}

void hide_stand_ins(Variables& variables) {
  const auto bin = find(variables, kBin);
  if (!bin) return;
  std::vector<std::string> path = split(find(variables, "PATH").value_or(""), ':');
  std::erase(path, *bin);
  set(variables, "PATH", join(path, ":"));
  const auto own = find(variables, "LOCKSTEP_BASH_ENV");
  if (own)
    set(variables, "BASH_ENV", *own);
  else
    remove(variables, "BASH_ENV");
  for (const std::string_view name :
       {std::string_view("LOCKSTEP_SLURM_FOLDER"), std::string_view("LOCKSTEP_SLURM_JOB"),
        std::string_view("LOCKSTEP_SLURM_LAUNCH"), std::string_view("LOCKSTEP_BASH_ENV"), kBin,
        kAllNodes})
    remove(variables, name);
}

void keep_for_tasks(int gpus_per_task, Variables& variables) {
  const auto keep = [&](std::string_view name) {
    if (const auto value = find(variables, name))
      set(variables, std::string(kKept) + std::string(name), *value);
  };
  std::for_each(kOfWorkers.begin(), kOfWorkers.end(), keep);
  std::for_each(kOfTasks.begin(), kOfTasks.end(), keep);
  if (gpus_per_task > 0) set(variables, kGpus, std::to_string(gpus_per_task));
  // Avoids a notice of the agents about setting OMP_NUM_THREADS.
  variables.try_emplace("OMP_NUM_THREADS", "1");
  prepare_agents_step(variables);
}

void prepare_agents_step(Variables& variables) {
  for (const char* name : {"SLURM_CPUS_PER_TASK", "SLURM_GPUS_PER_TASK", "SLURM_TRES_PER_TASK",
                           "PYXIS_CONTAINER_IMAGE", "PYXIS_CONTAINER_NAME"})
    remove(variables, name);
  // --gpus-per-task implies the binding "gres/gpu:per_task:N".
  if (find(variables, "SLURM_TRES_BIND").value_or("").find("per_task") != std::string::npos)
    remove(variables, "SLURM_TRES_BIND");
}

void become_task(std::string_view pid, Variables& variables) {
  const auto number = [&](std::string_view name) { return find(variables, name).value_or("0"); };
  const std::string rank = number("RANK");
  const std::string local = number("LOCAL_RANK");
  const std::string node = number("GROUP_RANK");
  const std::string tasks = number("WORLD_SIZE");
  const std::string each = number("LOCAL_WORLD_SIZE");
  const std::string nodes = number("GROUP_WORLD_SIZE");
  const auto gpus = parse_int(find(variables, kGpus).value_or(""));
  remove(variables, kGpus);
  const auto put_back = [&](std::string_view name) {
    const std::string kept = std::string(kKept) + std::string(name);
    const auto value = find(variables, kept);
    remove(variables, kept);
    if (value)
      set(variables, name, *value);
    else
      remove(variables, name);
  };
  std::for_each(kOfWorkers.begin(), kOfWorkers.end(), put_back);
  std::for_each(kOfTasks.begin(), kOfTasks.end(), put_back);
  // The agents start equally many ranks on each node.
  const std::string layout = print_counts(std::vector<std::string>(
      static_cast<std::size_t>(std::clamp<std::int64_t>(parse_int(nodes).value_or(0), 0, 65536)),
      each));
  set(variables, "SLURM_PROCID", rank);
  set(variables, "SLURM_LOCALID", local);
  set(variables, "SLURM_NODEID", node);
  set(variables, "SLURM_TASK_PID", std::string(pid));
  for (const char* name : {"SLURM_NTASKS", "SLURM_NPROCS", "SLURM_STEP_NUM_TASKS"})
    set(variables, name, tasks);
  for (const char* name : {"SLURM_NNODES", "SLURM_STEP_NUM_NODES"})
    set(variables, name, nodes);
  for (const char* name : {"SLURM_TASKS_PER_NODE", "SLURM_STEP_TASKS_PER_NODE"})
    set(variables, name, layout);
  const auto local_rank = parse_int(local);
  const auto first = parse_int(rank).value_or(0) - local_rank.value_or(0);
  std::vector<std::string> all;
  for (std::int64_t i = 0; i < std::clamp<std::int64_t>(parse_int(each).value_or(1), 1, 4096); ++i)
    all.push_back(std::to_string(first + i));
  set(variables, "SLURM_GTIDS", join(all, ","));
  if (!gpus || *gpus < 1 || !local_rank) return;
  for (const char* name : {"CUDA_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES", "GPU_DEVICE_ORDINAL",
                           "ZE_AFFINITY_MASK", "SLURM_STEP_GPUS"})
    if (const auto list = find(variables, name))
      set(variables, name, devices_of(*list, *local_rank, *gpus));
}

}  // namespace lockstep::slurm
