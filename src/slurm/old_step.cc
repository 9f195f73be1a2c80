#include "slurm/old_step.h"

#include "base/text.h"
#include "base/word_list.h"
#include "launchers/launch_words.h"
#include "slurm/gpu_words.h"
#include "slurm/job_script.h"
#include "slurm/pyxis_image.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <utility>

namespace lockstep::slurm {
namespace {

using Words = std::vector<std::string>;

// Upper bound of counts: products of two fit into int.
constexpr int kMostCounted = 30'000;

// Returns a bounded count; nullopt: not a number.
std::optional<int> count_of(std::string_view text) {
  const auto number = number_of(text);
  return number ? std::optional(std::min(*number, kMostCounted)) : std::nullopt;
}

// The size of an srun call.
struct Size {
  int nodes = 1;
  int tasks = 1;  // in all
};

Words placing_options(int nodes) {
  return {fmt::format("--nodes={}", nodes), fmt::format("--ntasks={}", nodes),
          "--ntasks-per-node=1",
          // Keep srun from ending the step when one agent ends: the agents tell each other about
          // failures, and outlive each other.
          "--no-kill", "--kill-on-bad-exit=0", "--wait=0"};
}

// Gives an agent the CPUs of all tasks on its node.
void add_cpus(int tasks, std::optional<int> each, Words& words) {
  if (each || tasks > 1)
    words.push_back(fmt::format("--cpus-per-task={}", each.value_or(1) * tasks));
}

class StepReader {
 public:
  StepReader(std::span<const std::string> words, const StepFacts& facts) : facts_(facts) {
    std::vector<PlacedWord> placed;
    placed.reserve(words.size());
    for (const std::string& each : words)
      placed.push_back({each, 1});
    read_ = read_srun_settings(placed);
    step_.words.assign(words.begin() + static_cast<std::ptrdiff_t>(read_.words), words.end());
  }

  OldStep read() {
    if (!read_.problems.empty() || step_.words.empty()) return std::move(step_);
    size_ = size();
    find_launch();
    if (!launch_) return std::move(step_);
    step_.kind = kind();
    if (step_.kind == StepKind::pass) return std::move(step_);
    SrunContainer container = container_of_srun(read_.settings);
    step_.run = std::move(container.run);
    step_.why = container.why.empty() ? why_not() : std::move(container.why);
    if (!step_.why.empty()) {
      step_.kind = StepKind::pass;
      return std::move(step_);
    }
    step_.tasks_per_node = size_.tasks / size_.nodes;
    note_counts();
    step_.options = options();
    return std::move(step_);
  }

  // Returns the options of a step where the script itself called no srun.
  Words options_of_job(int nodes) const {
    Words words = placing_options(nodes);
    const Size job = size();
    add_cpus((job.tasks + job.nodes - 1) / job.nodes, cpus_of_task(), words);
    return words;
  }

 private:
  const Setting* find(std::string_view name) const { return find_setting(read_.settings, name); }

  std::optional<int> variable(std::string_view name) const {
    const auto text = facts_.variable(name);
    return text ? count_of(*text) : std::nullopt;
  }

  Size size() const;
  void find_launch();
  std::optional<std::string> script_text() const;
  StepKind kind() const;
  bool binds_gpus() const;
  std::string_view pyxis_variable() const;
  std::string why_not() const;
  std::optional<CountedGpus> gpus_of_task() const;
  std::optional<int> cpus_of_task() const;
  void note_counts();
  Words options() const;

  const StepFacts& facts_;
  PlacedSettings read_;
  OldStep step_;
  Size size_;
  std::optional<LaunchLine> launch_;
  bool direct_ = false;  // the step's words begin with the launcher
};

// Counts as srun does: its own options first, then the job's. The job's --ntasks-per-node counts
// only if no option gives a number of tasks.
Size StepReader::size() const {
  const Setting* range = find("nodes");
  int nodes = facts_.nodes;
  if (range != nullptr) nodes = count_of(split(range->value, '-').back()).value_or(facts_.nodes);
  nodes = std::max(nodes, 1);
  std::optional<int> tasks;
  if (const Setting* all = find("ntasks"); all != nullptr)
    tasks = count_of(all->value);
  else if (const Setting* each = find("ntasks-per-node"); each != nullptr)
    tasks = count_of(each->value).value_or(1) * nodes;
  else if (const auto job = variable("SLURM_NTASKS"))
    tasks = job;
  else if (const auto per_node = variable("SLURM_NTASKS_PER_NODE"))
    tasks = *per_node * nodes;
  const int all = std::max(tasks.value_or(nodes), 1);
  return {std::min(nodes, all), all};
}

// Returns the text of a shell script that the step runs: "run.sh" or "bash run.sh". nullopt: no
// script, or bash -c.
std::optional<std::string> StepReader::script_text() const {
  std::size_t at = 0;
  if (is_one_of(base_name(step_.words[0]), {"bash", "sh", "dash", "zsh"})) ++at;
  if (at > 0)
    while (at < step_.words.size() && step_.words[at].starts_with("-")) {
      if (!step_.words[at].starts_with("--") && step_.words[at].ends_with("c")) return std::nullopt;
      ++at;
    }
  if (at >= step_.words.size()) return std::nullopt;
  const auto text = facts_.read_file(step_.words[at]);
  const bool is_shell = text && text->find('\0') == std::string::npos &&
                        (at > 0 || (text->starts_with("#!") &&
                                    text->substr(0, text->find('\n')).find("sh") != text->npos));
  return is_shell ? text : std::nullopt;
}

void StepReader::find_launch() {
  JobScript found = job_of_words("", {}, step_.words);
  direct_ = launchers::launcher_of(step_.words) != launchers::Launcher::none;
  if (found.launches.empty())
    if (const auto text = script_text()) found = read_job_script("", *text);
  for (LaunchLine& each : found.launches) {
    // A launcher counts more than a Python program in front of it, such as a preparation.
    const bool starts_ranks = each.launcher != Launcher::python || !program_of(each).name.empty();
    if (!starts_ranks) continue;
    const bool better =
        !launch_ || (launch_->launcher == Launcher::python && each.launcher != Launcher::python);
    if (better) launch_ = std::move(each);
  }
}

StepKind StepReader::kind() const {
  switch (launch_->launcher) {
    case Launcher::lockstep:
      return StepKind::pass;
    case Launcher::python:
      // One task needs no agent.
      return size_.tasks > 1 ? StepKind::tasks : StepKind::pass;
    default:
      return direct_ ? StepKind::agents : StepKind::inside;
  }
}

// Returns whether the job assigns GPUs to tasks by --gpu-bind. --gpus-per-task implies "per_task",
// which agents can do as well.
bool StepReader::binds_gpus() const {
  for (const char* name : {"SLURM_GPU_BIND", "SLURM_TRES_BIND"}) {
    const std::string text = facts_.variable(name).value_or("");
    if (!text.empty() && text.find("none") == text.npos && text.find("per_task") == text.npos)
      return true;
  }
  return false;
}

// Returns the variable from which pyxis reads an option that is not given; empty: none. Without an
// image or a name pyxis ignores the other options. Source: pyxis' args.c.
std::string_view StepReader::pyxis_variable() const {
  constexpr std::pair<std::string_view, std::string_view> kVariables[] = {
      {"PYXIS_CONTAINER_IMAGE", "container-image"},
      {"PYXIS_CONTAINER_NAME", "container-name"},
      {"PYXIS_CONTAINER_MOUNTS", "container-mounts"},
      {"PYXIS_CONTAINER_WORKDIR", "container-workdir"},
      {"PYXIS_CONTAINER_SAVE", "container-save"},
      {"PYXIS_CONTAINER_MOUNT_HOME", "container-mount-home"},
      {"PYXIS_CONTAINER_REMAP_ROOT", "container-remap-root"},
      {"PYXIS_CONTAINER_ENTRYPOINT", "container-entrypoint"},
      {"PYXIS_CONTAINER_WRITABLE", "container-writable"},
      {"PYXIS_CONTAINER_READONLY", "container-readonly"},
      {"PYXIS_CONTAINER_ENV", "container-env"},
      {"PYXIS_CONTAINER_UNSHARE", "container-unshare"}};
  const bool pyxis = find("container-image") != nullptr || find("container-name") != nullptr;
  for (const auto& [name, option] : kVariables) {
    const bool selects = option == "container-image" || option == "container-name";
    const bool given = find(option) != nullptr || find(fmt::format("no-{}", option)) != nullptr;
    if (!given && (pyxis || selects) && facts_.variable(std::string(name))) return name;
  }
  return {};
}

// Returns why agents cannot replace this srun call; empty: they can.
std::string StepReader::why_not() const {
  for (const char* name : {"multi-prog", "pty", "het-group", "nodelist", "exclude", "nodefile",
                           "relative", "gpu-bind", "ntasks-per-gpu", "tres-bind", "bcast"})
    if (find(name) != nullptr) return fmt::format("srun --{} is given", name);
  if (const std::string_view name = pyxis_variable(); !name.empty())
    return fmt::format("{} is set", name);
  // srun refuses --ntasks beside --ntasks-per-gpu, and a step of agents needs --ntasks.
  if (facts_.variable("SLURM_NTASKS_PER_GPU")) return "the job has --ntasks-per-gpu";
  if (step_.kind == StepKind::tasks && binds_gpus()) return "the job has --gpu-bind";
  if (const Setting* mpi = find("mpi"); mpi != nullptr && mpi->value != "none")
    return fmt::format("srun --mpi={} is given", printable(mpi->value, 40));
  if (!step_.run.empty() && step_.kind == StepKind::inside)
    return "srun --container-image starts a shell in the image";
  // Words of accelerate mean what the accelerate of the image says.
  if (!step_.run.empty() && launch_->launcher == Launcher::accelerate)
    return "srun --container-image starts accelerate, which only the image has";
  if (const Setting* order = find("distribution"); order != nullptr)
    if (!is_one_of(split(order->value, ':').front(), {"block", "*"}))
      return fmt::format("srun --distribution={} is given", printable(order->value, 40));
  if (launch_->in_container) return "it starts a container";
  if (size_.nodes != facts_.nodes)
    return fmt::format("it takes {} of the job's {} nodes", size_.nodes, facts_.nodes);
  if (size_.tasks % size_.nodes != 0)
    return fmt::format("{} tasks do not divide by {} nodes", size_.tasks, size_.nodes);
  // Slurm has filled node after node, so the nodes have different numbers of tasks. Agents start
  // equally many on each node.
  const std::string shares = facts_.variable("SLURM_TASKS_PER_NODE").value_or("");
  const bool own_shares = find("ntasks-per-node") != nullptr || find("ntasks") != nullptr;
  if (step_.kind == StepKind::tasks && !own_shares && shares.find(',') != std::string::npos)
    return fmt::format("its nodes have {} tasks, and not as many each (--ntasks-per-node)",
                       printable(shares, 100));
  // A stand-in is found through PATH only.
  if (!direct_ && launch_->launcher != Launcher::python &&
      launch_->program.find('/') != std::string::npos)
    return fmt::format("{} is called by its path inside of a shell",
                       printable(launch_->program, 100));
  return {};
}

// Returns the GPUs per task. Since 23.11 sbatch sets SLURM_TRES_PER_TASK for --gpus-per-task.
std::optional<CountedGpus> StepReader::gpus_of_task() const {
  if (const Setting* own = find("gpus-per-task"); own != nullptr) return gpus_of_count(own->value);
  if (const Setting* own = find("tres-per-task"); own != nullptr)
    if (auto gpus = gpus_of_gres(own->value)) return gpus;
  if (const auto text = facts_.variable("SLURM_GPUS_PER_TASK")) return gpus_of_count(*text);
  return gpus_of_gres(facts_.variable("SLURM_TRES_PER_TASK").value_or(""));
}

void StepReader::note_counts() {
  if (step_.kind != StepKind::tasks) return;
  if (find("cpus-per-task") != nullptr) step_.cpus_per_task = cpus_of_task();
  if (const auto gpus = gpus_of_task())
    step_.gpus_per_task = std::min(gpus->count.value_or(0), kMostCounted);
}

// Returns the CPUs per task from srun's options, else from the variables that srun reads.
std::optional<int> StepReader::cpus_of_task() const {
  const Setting* own = find("cpus-per-task");
  if (own != nullptr) return count_of(own->value);
  const Setting* tres = find("tres-per-task");
  if (tres != nullptr)
    if (const auto cpus = read_tres_per_task(tres->value).cpus)
      return std::min(*cpus, kMostCounted);
  return variable("SLURM_CPUS_PER_TASK");
}

// Returns srun's options for the agents' step: the user's options, except those about the placement
// of tasks, which are for the ranks and not for agents.
Words StepReader::options() const {
  constexpr auto kReplaced = std::to_array<std::string_view>(
      {"nodes", "ntasks", "ntasks-per-node", "ntasks-per-core", "ntasks-per-socket",
       "cpus-per-task", "gpus-per-task", "tres-per-task", "cpu-bind", "distribution",
       "kill-on-bad-exit", "wait", "no-kill", "label", "unbuffered"});
  Words words;
  for (const Setting& each : read_.settings)
    if (std::find(kReplaced.begin(), kReplaced.end(), each.name) == kReplaced.end() &&
        !is_about_container(each.name))
      words.push_back(word_of(each));
  for (std::string& each : placing_options(facts_.nodes + facts_.spares))
    words.push_back(std::move(each));
  const int tasks = size_.tasks / size_.nodes;
  add_cpus(tasks, cpus_of_task(), words);
  // Ask for GPUs per node. All of them as GPUs of one task would exceed the job's count per task,
  // and srun would refuse. Slurm 26.05 refuses GPUs in --gres beside --gpus-per-node.
  const Setting* gres = find("gres");
  const bool by_node =
      find("gpus-per-node") != nullptr || (gres != nullptr && gpus_of_gres(gres->value));
  if (step_.gpus_per_task > 0 && !by_node)
    words.push_back(fmt::format("--gpus-per-node={}", step_.gpus_per_task * tasks));
  return words;
}

}  // namespace

std::vector<std::string> agent_step_options(const StepFacts& facts, bool alone) {
  return StepReader({}, facts).options_of_job(alone ? 1 : facts.nodes + facts.spares);
}

OldStep read_old_step(std::span<const std::string> words, const StepFacts& facts) {
  return StepReader(words, facts).read();
}

}  // namespace lockstep::slurm
