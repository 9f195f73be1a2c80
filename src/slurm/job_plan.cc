#include "slurm/job_plan.h"

#include "base/text.h"
#include "slurm/gpu_words.h"
#include "slurm/times.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cstdint>

namespace lockstep::slurm {
namespace {

constexpr long kMostNodes = 65'533;  // Slurm's own limit
constexpr long kMostWorkers = 4096;

// The default signal before the time limit, for jobs without --signal. The lead is a twentieth of
// the time limit, for a training step and a checkpoint, plus a minute: Slurm checks limits once a
// minute and may signal early.
constexpr long kShortJob = 600;  // shorter jobs get no signal, only KillWait
constexpr long kLeastLead = 30;
constexpr long kMostLead = 300;
constexpr long kSlurmIsEarly = 60;

// Applies the user's options step by step to a list of settings. Nodes come first, because counts
// of the whole job are divided by the number of nodes.
class Planner {
 public:
  explicit Planner(const JobWish& wish) : wish_(wish) {
    for (const Setting& setting : wish.settings)
      if (setting.component == 0) set(setting);
  }

  Result<JobPlan> plan() {
    LOCKSTEP_TRY(refuse_what_cannot_be());
    if (wish_.old_script) {
      LOCKSTEP_TRY(count_nodes_of_script());
    } else {
      LOCKSTEP_TRY(count_nodes());
      LOCKSTEP_TRY(split_tres_per_task());
      LOCKSTEP_TRY(count_gpus());
      LOCKSTEP_TRY(count_workers());
      LOCKSTEP_TRY(place_gpus());
    }
    LOCKSTEP_TRY(add_chain());
    add_defaults();
    LOCKSTEP_TRY(add_array());
    LOCKSTEP_TRY(refuse_line_breaks());
    plan_.spares = wish_.spares;
    return std::move(plan_);
  }

 private:
  const Setting* find(std::string_view name) const { return find_setting(plan_.settings, name); }
  // sbatch takes the last of two equal options, so remove the earlier one.
  void set(const Setting& setting) {
    remove(setting.name);
    plan_.settings.push_back(setting);
  }
  void set(std::string name, std::string value) {
    set(Setting{.name = std::move(name), .value = std::move(value), .has_value = true});
  }
  void remove(std::string_view name) {
    std::erase_if(plan_.settings, [&](const Setting& each) { return each.name == name; });
  }

  // Reads a numeric option; nullopt: not given.
  Result<std::optional<long>> number(std::string_view name, long least, long most) const {
    const Setting* setting = find(name);
    if (setting == nullptr) return std::nullopt;
    const auto value = parse_int(setting->value);
    if (!value || *value < least || *value > most)
      return fail(Errc::invalid_input, fmt::format("--{}={} must be a number from {} to {}", name,
                                                   printable(setting->value, 40), least, most));
    return static_cast<long>(*value);
  }

  Status refuse_what_cannot_be() const;
  Status refuse_line_breaks() const;
  Result<std::optional<long>> fixed_nodes() const;
  Status count_nodes();
  Status count_nodes_of_script();
  Status add_spares(std::string_view name, long nodes);
  Status split_tres_per_task();
  Status count_gpus();
  Status count_workers();
  Result<long> tasks_per_node();
  Status place_gpus();
  void drop_bindings();
  Status add_chain();
  void add_defaults();
  void add_lead();
  Status add_array();

  const JobWish& wish_;
  JobPlan plan_;
  std::optional<long> gpus_of_node_;  // nullopt: the user does not count GPUs by node or job
  std::optional<long> gpus_of_task_;  // --gpus-per-task
  std::optional<long> tasks_of_gpu_;  // --ntasks-per-gpu
};

Status Planner::refuse_what_cannot_be() const {
  if (!wish_.array.empty() && wish_.chain)
    return fail(Errc::invalid_input,
                fmt::format("--chain does not go with {}: a row has no next job",
                            wish_.old_script ? "--array" : "--sweep"),
                "leave --chain out; --requeue queues a row again that lost its nodes");
  for (const auto& [name, why] : std::to_array<std::pair<std::string_view, std::string_view>>(
           {{"array", "an array is many jobs"},
            {"wrap", "a wrapped command cannot be a training command"}})) {
    // The tasks of a user's own script are known as rows.
    const bool is_known = name == "array" && wish_.old_script && !wish_.array.empty();
    if (find(name) != nullptr && !is_known)
      return fail(Errc::invalid_input, fmt::format("--{}: {}", name, why),
                  "submit one job, or rows of values with --sweep");
  }
  for (const Setting& setting : wish_.settings)
    if (setting.component != 0)
      return fail(Errc::invalid_input, "heterogeneous jobs are not submitted by Lockstep",
                  "use sbatch, and srun lockstep run in the script");
  if (wish_.spares < 0 || wish_.spares > kMostNodes)
    return fail(Errc::invalid_input,
                fmt::format("--spare must be a number of nodes from 0 to {} (got {})", kMostNodes,
                            wish_.spares));
  return {};
}

// Refuses line breaks in values: the text behind a line break in a #SBATCH line would run as a
// command.
Status Planner::refuse_line_breaks() const {
  for (const Setting& each : plan_.settings)
    if (each.value.find('\n') != std::string::npos)
      return fail(
          Errc::invalid_input,
          fmt::format("--{}: the value has a line break: {}", each.name, printable(each.value, 80)),
          "a #SBATCH line is one line");
  return {};
}

// Returns the number of nodes: 2 for "2"; nullopt for "2-4", where Slurm chooses.
Result<std::optional<long>> Planner::fixed_nodes() const {
  const Setting* setting = find("nodes");
  const std::string text = setting == nullptr ? "1" : setting->value;
  const auto ends = split(text, '-');
  std::array<long, 2> range{};
  for (std::size_t i = 0; i < std::min<std::size_t>(ends.size(), 2); ++i) {
    const auto value = parse_int(ends[i]);
    if (ends.size() > 2 || !value || *value < 1 || *value > kMostNodes)
      return fail(Errc::invalid_input,
                  fmt::format("--nodes={} must be a number of nodes", printable(text, 40)),
                  "give --nodes=N, or --nodes=MIN-MAX");
    range.at(i) = static_cast<long>(*value);
  }
  if (ends.size() == 1 || range[0] == range[1]) return range[0];
  if (wish_.spares > 0)
    return fail(Errc::invalid_input, "--spare needs a fixed number of nodes", "give --nodes=N");
  return std::nullopt;
}

Status Planner::count_nodes() {
  LOCKSTEP_TRY_ASSIGN(const auto nodes, fixed_nodes());
  if (!nodes) return {};
  plan_.nodes = static_cast<int>(*nodes);
  set("nodes", std::to_string(*nodes + wish_.spares));
  return {};
}

// Counts the nodes of a user's own script. Without --nodes, Slurm derives their number from the
// tasks.
Status Planner::count_nodes_of_script() {
  LOCKSTEP_TRY_ASSIGN(const auto fixed, fixed_nodes());
  long nodes = fixed.value_or(0);  // 0: Slurm says
  if (find("nodes") == nullptr) {
    LOCKSTEP_TRY_ASSIGN(const auto all, number("ntasks", 1, kMostNodes * kMostWorkers));
    LOCKSTEP_TRY_ASSIGN(const auto each, number("ntasks-per-node", 1, kMostWorkers));
    if (all && each)
      nodes = (*all + *each - 1) / *each;
    else if (all && *all > 1)
      nodes = 0;
  }
  if (nodes > 0) plan_.nodes = static_cast<int>(nodes);
  if (wish_.spares == 0) return {};
  if (nodes == 0)
    return fail(Errc::invalid_input, "--spare needs a fixed number of nodes", "give --nodes=N");
  set("nodes", std::to_string(nodes + wish_.spares));
  LOCKSTEP_TRY(add_spares("ntasks", nodes));
  return add_spares("gpus", nodes);
}

// Returns the number of GPUs; nullopt: no number, or more than a node can have.
std::optional<long> number_of_gpus(const CountedGpus& gpus) {
  if (!gpus.count || *gpus.count > kMostWorkers) return std::nullopt;
  return *gpus.count;
}

// Splits --tres-per-task into --cpus-per-task and --gpus-per-task, which mean the same.
Status Planner::split_tres_per_task() {
  const Setting* own = find("tres-per-task");
  if (own == nullptr) return {};
  const TresPerTask tres = read_tres_per_task(own->value);
  if (!tres.rest.empty())
    return fail(Errc::invalid_input,
                fmt::format("--tres-per-task: {} can't be counted by task: the one task of a node "
                            "is the agent of all its ranks",
                            printable(join(tres.rest, ","), 80)),
                "use --gres or --licenses");
  for (const auto& [name, is_given] : {std::pair{"cpus-per-task", tres.cpus.has_value()},
                                       {"gpus-per-task", tres.gpus.has_value()}})
    if (is_given && find(name) != nullptr)
      return fail(Errc::invalid_input, fmt::format("--tres-per-task and --{} say the same", name),
                  "give one of them");
  remove("tres-per-task");
  if (tres.cpus) set("cpus-per-task", std::to_string(*tres.cpus));
  if (tres.gpus) set("gpus-per-task", print_gpus(*tres.gpus));
  return {};
}

// Converts GPUs of the whole job to GPUs per node, so that spares get as many as other nodes.
Status Planner::count_gpus() {
  if (const Setting* each = find("gpus-per-task"); each != nullptr) {
    gpus_of_task_ = number_of_gpus(gpus_of_count(each->value));
    if (!gpus_of_task_)
      return fail(Errc::invalid_input,
                  "--gpus-per-task=" + printable(each->value, 40) + " must be a number of GPUs");
  }
  if (const Setting* all = find("gpus"); all != nullptr) {
    CountedGpus gpus = gpus_of_count(all->value);
    const bool is_one_kind = all->value.find(',') == std::string::npos;
    if (!gpus.count || !is_one_kind || !plan_.nodes || *gpus.count % *plan_.nodes != 0)
      return fail(Errc::invalid_input,
                  "--gpus=" + printable(all->value, 40) + " can't be shared among the nodes",
                  "give --gpus-per-node");
    gpus.count = *gpus.count / *plan_.nodes;
    set("gpus-per-node", print_gpus(gpus));
    remove("gpus");
  }
  if (const Setting* own = find("gpus-per-node"); own != nullptr)
    gpus_of_node_ = number_of_gpus(gpus_of_count(own->value));
  else if (const Setting* gres = find("gres"); gres != nullptr)
    if (const auto gpus = gpus_of_gres(gres->value)) gpus_of_node_ = number_of_gpus(*gpus);
  return {};
}

// Returns the ranks per node: a user who counts tasks means ranks.
Result<long> Planner::tasks_per_node() {
  LOCKSTEP_TRY_ASSIGN(const auto each, number("ntasks-per-node", 1, kMostWorkers));
  LOCKSTEP_TRY_ASSIGN(const auto all, number("ntasks", 1, kMostNodes * kMostWorkers));
  LOCKSTEP_TRY_ASSIGN(tasks_of_gpu_, number("ntasks-per-gpu", 1, kMostWorkers));
  if (tasks_of_gpu_ && (each || gpus_of_task_))
    return fail(Errc::invalid_input,
                fmt::format("--ntasks-per-gpu does not go with --{}",
                            each ? "ntasks-per-node" : "gpus-per-task"),
                "give one of them");
  // One agent per node replaces the tasks.
  remove("ntasks");
  remove("ntasks-per-gpu");
  if (each) return *each;
  if (all) {
    if (!plan_.nodes || *all % *plan_.nodes != 0)
      return fail(Errc::invalid_input,
                  fmt::format("--ntasks={} must be a multiple of the number of nodes", *all),
                  "give --ntasks-per-node");
    return *all / *plan_.nodes;
  }
  if (tasks_of_gpu_ && !gpus_of_node_)
    return fail(Errc::invalid_input, "--ntasks-per-gpu needs a number of GPUs",
                "give --gpus-per-node");
  if (tasks_of_gpu_) return std::min(*gpus_of_node_ * *tasks_of_gpu_, kMostWorkers);
  const bool is_shared = gpus_of_node_ && gpus_of_task_ && *gpus_of_task_ > 0;
  if (is_shared && *gpus_of_node_ > 0 && *gpus_of_node_ % *gpus_of_task_ == 0)
    return *gpus_of_node_ / *gpus_of_task_;
  return 1;
}

Status Planner::count_workers() {
  LOCKSTEP_TRY_ASSIGN(const long tasks, tasks_per_node());
  LOCKSTEP_TRY_ASSIGN(const auto cpus, number("cpus-per-task", 1, 1 << 20));
  plan_.workers = static_cast<int>(tasks);
  // The one task needs the CPUs of all ranks. But Slurm refuses --cpus-per-task beside
  // --cpus-per-gpu, which covers all CPUs of the node anyway.
  if (cpus || (tasks > 1 && find("cpus-per-gpu") == nullptr)) {
    plan_.cpus = static_cast<int>(tasks * cpus.value_or(1));
    set("cpus-per-task", std::to_string(*plan_.cpus));
  }
  if (tasks > 1)
    plan_.notes.push_back(
        fmt::format("{} tasks per node became one task; its agent starts {} ranks", tasks, tasks));
  set("ntasks-per-node", "1");
  return {};
}

// Increases a count of the whole job, so that a spare has as much as any other node.
Status Planner::add_spares(std::string_view name, long nodes) {
  const Setting* all = find(name);
  if (all == nullptr) return {};
  // The value is "16", "a100:16" or "a100=16".
  const std::string kind = all->value.substr(0, all->value.find_last_of(":=") + 1);
  const auto count = parse_int(all->value.substr(kind.size()));
  const bool is_one_kind = kind.find(',') == std::string::npos;
  if (!is_one_kind || !count || *count < 0 || *count > kMostNodes * kMostWorkers ||
      *count % nodes != 0)
    return fail(Errc::invalid_input,
                fmt::format("--spare: --{}={} can't be shared among {} nodes", name,
                            printable(all->value, 40), nodes),
                fmt::format("give --{}-per-node", name));
  set(std::string(name), kind + std::to_string(*count / nodes * (nodes + wish_.spares)));
  return {};
}

// Converts GPUs per task to GPUs per node, because the one task has all GPUs of the node. Slurm
// 26.05 refuses GPUs in --gres beside --gpus-per-node, so a count in --gres stays there.
Status Planner::place_gpus() {
  if (const Setting* each = find("gpus-per-task"); each != nullptr) {
    if (!gpus_of_node_) {
      gpus_of_node_ = *gpus_of_task_ * plan_.workers;
      CountedGpus gpus = gpus_of_count(each->value);
      gpus.count = static_cast<int>(*gpus_of_node_);
      set("gpus-per-node", print_gpus(gpus));
    }
    remove("gpus-per-task");
    plan_.notes.emplace_back(
        "--gpus-per-task became --gpus-per-node: a rank that sees a single GPU cannot use "
        "direct links to other GPUs");
  } else if (tasks_of_gpu_ && !gpus_of_node_) {
    if (plan_.workers % *tasks_of_gpu_ != 0)
      return fail(Errc::invalid_input,
                  fmt::format("--ntasks-per-gpu={} does not divide the {} tasks on a node",
                              *tasks_of_gpu_, plan_.workers),
                  "give --gpus-per-node");
    gpus_of_node_ = plan_.workers / *tasks_of_gpu_;
    set("gpus-per-node", std::to_string(*gpus_of_node_));
  }
  drop_bindings();
  // Without tasks, one rank per GPU is meant.
  if (gpus_of_node_ && *gpus_of_node_ > 0 && plan_.workers == 1)
    plan_.workers = static_cast<int>(*gpus_of_node_);
  return {};
}

// Drops bindings of GPUs to tasks. To Slurm the node has one task, so all ranks would see the same
// GPU.
void Planner::drop_bindings() {
  for (const char* name : {"gpu-bind", "tres-bind"}) {
    const Setting* own = find(name);
    if (own == nullptr || own->value == "none") continue;
    remove(name);
    plan_.notes.push_back(fmt::format("--{} is left out: a rank sees all GPUs of the node", name));
  }
}

// Enables the chain. A chain needs a time limit, at whose end the job continues.
Status Planner::add_chain() {
  if (!wish_.chain) return {};
  const Setting* limit = find("time");
  if (limit == nullptr || parse_duration(limit->value).value_or(0) <= 0)
    return fail(Errc::invalid_input, "--chain needs a time limit: the job goes on after the limit",
                "give --time=HOURS:MINUTES:SECONDS");
  plan_.chain = wish_.chain;
  // A requeue keeps the job's id, so prefer a requeue to a new job.
  if (find("no-requeue") == nullptr && find("requeue") == nullptr) set(Setting{.name = "requeue"});
  return {};
}

// Each row needs an output file of its own. A user's own script may know what it does.
Status Planner::add_array() {
  if (wish_.array.empty()) return {};
  set("array", wish_.array);
  bool in_pattern = false;
  bool names_task = false;
  bool names_array = !wish_.several_arrays;
  for (const char c : plan_.output) {
    names_task = names_task || (in_pattern && (c == 'a' || c == 'j'));
    names_array = names_array || (in_pattern && (c == 'A' || c == 'j'));
    const bool is_width = in_pattern && c >= '0' && c <= '9';
    in_pattern = is_width || (!in_pattern && c == '%');
  }
  if (names_task && names_array) return {};
  if (wish_.old_script) {
    plan_.notes.push_back(fmt::format(
        "all tasks of the array write to {}; with %a in the name, each has a file of its own",
        printable(plan_.output, 200)));
    return {};
  }
  if (!names_task)
    return fail(
        Errc::invalid_input,
        fmt::format("--output={}: all rows would write to this file", printable(plan_.output, 100)),
        "put %a, the number of the array's task, into the name");
  return fail(
      Errc::invalid_input,
      fmt::format("--output={}: the rows need several array jobs, whose tasks would write to "
                  "the same files",
                  printable(plan_.output, 100)),
      "put %A, the number of the array job, into the name, beside %a");
}

void Planner::add_lead() {
  const Setting* limit = find("time");
  const std::int64_t seconds = limit == nullptr ? 0 : parse_duration(limit->value).value_or(0);
  if (find("signal") != nullptr || (seconds < kShortJob && !wish_.chain)) return;
  // A short job in a chain keeps at least half of its time for training.
  const std::int64_t lead = std::min<std::int64_t>(
      std::clamp<std::int64_t>(seconds / 20, kLeastLead, kMostLead) + kSlurmIsEarly,
      std::max<std::int64_t>(seconds / 2, 1));
  plan_.lead_s = static_cast<int>(lead);
  set("signal", fmt::format("B:USR1@{}", lead));
}

void Planner::add_defaults() {
  if (find("job-name") == nullptr) set("job-name", printable(wish_.name));
  const Setting* output = find("output");
  const char* usual = wish_.array.empty() ? "slurm-%j.out" : "slurm-%A_%a.out";
  plan_.output = output == nullptr ? usual : output->value;
  const Setting* chdir = find("chdir");
  std::string folder = chdir == nullptr ? wish_.folder : chdir->value;
  replace_all(folder, "%", "%%");  // the folder's name is not a pattern
  if (!plan_.output.starts_with('/')) plan_.output = folder + "/" + plan_.output;
  set("output", plan_.output);
  // A requeued job must not truncate the log of earlier runs.
  if (find("open-mode") == nullptr) set("open-mode", "append");
  // --no-kill: a lost node ends neither the job nor the agents of other nodes.
  set(Setting{.name = "no-kill"});
  plan_.requeue = find("requeue") != nullptr || plan_.chain;
  add_lead();
}

}  // namespace

Result<JobPlan> plan_job(const JobWish& wish) {
  return Planner(wish).plan();
}

}  // namespace lockstep::slurm
