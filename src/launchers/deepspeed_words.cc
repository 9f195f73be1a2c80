#include "base/text.h"
#include "launchers/launcher_words.h"

#include <fmt/core.h>

#include <algorithm>
#include <set>
#include <string>

namespace lockstep::launchers {
namespace {

constexpr bool kFlag = false;
constexpr std::int64_t kMostSlots = 4096;  // as hostfiles have it
constexpr std::int64_t kMostNodes = 65536;

// The options of DeepSpeed 0.19.
constexpr ArgumentRow kRows[] = {
    {"hostfile", true, 'H'},
    {"include", true, 'i'},
    {"exclude", true, 'e'},
    {"num-nodes"},
    {"min-elastic-nodes"},
    {"max-elastic-nodes"},
    {"num-gpus"},
    {"num-accelerators", true, 0, "num-gpus"},
    {"master-port"},
    {"master-addr"},
    {"node-rank"},
    {"launcher"},
    {"launcher-args"},
    {"module", kFlag},
    {"no-python", kFlag},
    {"no-local-rank", kFlag},
    {"no-ssh", kFlag},
    {"no-ssh-check", kFlag},
    {"force-multi", kFlag},
    {"save-pid", kFlag},
    {"enable-each-rank-log"},
    {"autotuning"},
    {"elastic-training", kFlag},
    {"bind-cores-to-rank", kFlag},
    {"bind-core-list"},
    {"ssh-port"},
    {"venv-script"},
    {"log-level"},
    {"quiet", kFlag, 'q'},
    {"help", kFlag, 'h', {}, true},
};

std::string underscored(std::string name) {
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

// Reads a count; nullopt: not given, or DeepSpeed's -1 for "not given".
Result<std::optional<std::int64_t>> number(const SplitArguments& split, const std::string& name,
                                           std::int64_t most) {
  if (!split.has(name)) return std::nullopt;
  const auto value = parse_int(split.text(name));
  if (!value || *value < -1 || *value > most)
    return fail(Errc::invalid_input,
                fmt::format("deepspeed: --{} {} must be a number from 0 to {}", underscored(name),
                            printable(split.text(name)), most));
  if (*value < 1) return std::nullopt;
  return *value;
}

std::string first_slots(std::int64_t count) {
  std::vector<std::string> slots;
  for (std::int64_t slot = 0; slot < count; ++slot)
    slots.push_back(std::to_string(slot));
  return join(slots, ",");
}

// Reads --include without a hostfile: "localhost:3,1@localhost:1" -> "1,3", sorted as DeepSpeed
// does. localhost is the only valid host.
Result<std::string> local_slots(std::string_view include) {
  constexpr std::string_view kLocal = "localhost:";
  std::set<std::int64_t> slots;
  for (const std::string& spec : split(include, '@')) {
    if (!spec.starts_with(kLocal))
      return fail(Errc::invalid_input,
                  fmt::format("deepspeed: --include {} without a hostfile", printable(include)),
                  "name the hosts with --hostfile FILE; this machine is localhost");
    for (const std::string& text : split(std::string_view(spec).substr(kLocal.size()), ',')) {
      const auto slot = parse_int(text);
      if (!slot || *slot < 0 || *slot >= kMostSlots)
        return fail(Errc::invalid_input,
                    fmt::format("deepspeed: --include {}: '{}' must be a slot", printable(include),
                                printable(text)),
                    "write as localhost:0,1");
      slots.insert(*slot);
    }
  }
  std::vector<std::string> words;
  words.reserve(slots.size());
  for (const std::int64_t slot : slots)
    words.push_back(std::to_string(slot));
  return join(words, ",");
}

class Reader {
 public:
  Reader(const SplitArguments& split, const ReadOptions& options)
      : split_(split), options_(options) {}

  Result<Launch> run();

 private:
  Status check() const;
  Status read_nodes();
  Status read_slots();
  void read_meeting();
  void read_elastic();
  void read_script();
  void say_dropped();
  // Returns whether a hostfile names the hosts, and not a scheduler.
  bool on_hosts() const { return !options_.placed_by_scheduler && launch_.nodes.hostfile; }

  const SplitArguments& split_;
  const ReadOptions& options_;
  Launch launch_{.launcher = Launcher::deepspeed};
  std::optional<std::int64_t> nodes_;
  std::optional<std::int64_t> least_;
  std::optional<std::int64_t> most_;
  std::optional<std::int64_t> gpus_;
};

// Refuses the combinations that DeepSpeed refuses.
Status Reader::check() const {
  // The autotuner calls DeepSpeed's own launcher for each trial, which a link to Lockstep's pdsh
  // can serve.
  if (split_.has("autotuning") && !split_.text("autotuning").empty())
    return fail(Errc::invalid_input, "deepspeed: --autotuning starts many jobs itself",
                "run the stock deepspeed with a link named pdsh to lockstep in PATH");
  const bool filtered = !split_.text("include").empty() || !split_.text("exclude").empty();
  if (!split_.text("include").empty() && !split_.text("exclude").empty())
    return fail(Errc::invalid_input, "deepspeed: --include and --exclude are both given",
                "give one of them");
  if (filtered && (nodes_ || gpus_))
    return fail(Errc::invalid_input,
                "deepspeed: --num_nodes and --num_gpus cannot be given with --include or --exclude",
                "leave one of them out");
  if (split_.has("no-python") && split_.has("module"))
    return fail(Errc::invalid_input, "deepspeed: --no_python and --module are both given",
                "give one of them");
  return {};
}

// Reads which nodes train. Under a scheduler the words are only recorded.
Status Reader::read_nodes() {
  if (nodes_) launch_.nodes.count = std::to_string(*nodes_);
  if (split_.has("hostfile")) launch_.nodes.hostfile = split_.text("hostfile");
  if (!launch_.nodes.hostfile && !options_.placed_by_scheduler)
    launch_.nodes.hostfile = options_.default_hostfile;
  for (const auto& [name, value] :
       {std::pair{"include", &launch_.nodes.include}, std::pair{"exclude", &launch_.nodes.exclude}})
    if (!split_.text(name).empty()) *value = split_.text(name);
  if (options_.placed_by_scheduler) return {};
  if (split_.has("no-ssh") && launch_.nodes.hostfile)
    return fail(Errc::invalid_input, "deepspeed: --no_ssh is for one start on each host",
                "leave it out: lockstep run --hostfile reaches all hosts; under Slurm use srun "
                "lockstep run");
  if (!on_hosts()) {
    if (nodes_.value_or(1) > 1)
      return fail(Errc::invalid_input,
                  fmt::format("deepspeed: --num_nodes {} without a hostfile", *nodes_),
                  "name the hosts with --hostfile FILE");
    return {};
  }
  launch_.run.push_back("--hostfile=" + *launch_.nodes.hostfile);
  if (launch_.nodes.include) launch_.run.push_back("--include=" + *launch_.nodes.include);
  if (launch_.nodes.exclude) launch_.run.push_back("--exclude=" + *launch_.nodes.exclude);
  if (nodes_)
    // DeepSpeed takes the first nodes of the hostfile.
    launch_.run.push_back(*nodes_ == 1 ? "--nodes=0" : fmt::format("--nodes=0-{}", *nodes_ - 1));
  return {};
}

Status Reader::read_slots() {
  // DeepSpeed takes the first GPUs of each node.
  if (gpus_) {
    launch_.run.push_back("--slots=" + first_slots(*gpus_));
    return {};
  }
  if (on_hosts()) return {};  // the hostfile has the slots
  const std::string include = launch_.nodes.include.value_or("");
  if (!options_.placed_by_scheduler && launch_.nodes.exclude)
    return fail(Errc::invalid_input,
                fmt::format("deepspeed: --exclude {} without a hostfile",
                            printable(*launch_.nodes.exclude)),
                "name the devices to use: --include localhost:0,1");
  // DeepSpeed starts a rank on every visible GPU by default.
  std::string slots = "gpu";
  if (!options_.placed_by_scheduler && !include.empty() && include != "localhost") {
    LOCKSTEP_TRY_ASSIGN(slots, local_slots(include));
  }
  launch_.run.push_back("--slots=" + slots);
  return {};
}

// Lockstep's agents find each other, so words about a meeting place count for one machine only.
void Reader::read_meeting() {
  const bool alone = !on_hosts() && !options_.placed_by_scheduler;
  if (alone && split_.has("master-port"))
    launch_.run.push_back("--master-port=" + split_.text("master-port"));
  std::vector<std::string> dropped;
  for (const char* name : {"master-addr", "master-port", "node-rank", "no-ssh"})
    if (!alone && split_.has(name)) dropped.push_back("--" + underscored(name));
  if (options_.placed_by_scheduler)
    for (const char* name : {"hostfile", "include", "exclude"})
      if (split_.has(name)) dropped.push_back(std::string("--") + name);
  if (dropped.empty()) return;
  launch_.notes.push_back(
      join(dropped, ", ") +
      (options_.placed_by_scheduler
           ? " dropped: the scheduler says which nodes there are, and Lockstep's agents find each "
             "other"
           : " dropped: Lockstep's agents find each other"));
}

void Reader::read_elastic() {
  if (!split_.has("elastic-training")) return;
  launch_.run.emplace_back("--max-restarts=100");  // the limit of DeepSpeed's own agent
  const auto most = most_ ? most_ : nodes_;
  if (!most) return;
  launch_.nodes.count = fmt::format("{}:{}", least_.value_or(1), *most);
  if (!options_.placed_by_scheduler) launch_.run.push_back("--nnodes=" + *launch_.nodes.count);
}

void Reader::read_script() {
  // DeepSpeed's launch.py exits with the failed worker's code.
  launch_.run.emplace_back("--exit-code=worker");
  const std::string logs = split_.text("enable-each-rank-log");
  if (!logs.empty() && logs != "None") {
    launch_.run.emplace_back("--redirects=3");
    launch_.run.push_back("--log-dir=" + logs);
  }
  const bool no_python = split_.has("no-python");
  if (no_python) launch_.run.emplace_back("--no-python");
  if (split_.has("module")) launch_.run.emplace_back("--module");
  launch_.run.emplace_back("--");
  if (split_.rest.empty()) return;
  const std::string& script = split_.rest.front();
  launch_.run.push_back(no_python ? script : kept_literally(script));
  // DeepSpeed's launch.py passes --local_rank to scripts; its elastic agent does not.
  if (!split_.has("no-local-rank") && !split_.has("elastic-training"))
    launch_.run.emplace_back("--local_rank=${local_rank}");
  append_literally(std::span(split_.rest).subspan(1), launch_.run);
}

// Notes the words without effect here, so that users do not rely on them.
void Reader::say_dropped() {
  const std::string launcher = to_lower(split_.text("launcher"));
  if (!launcher.empty() && launcher != "pdsh")
    launch_.notes.push_back("--launcher " + printable(launcher) +
                            " dropped: Lockstep's agents start the ranks");
  struct Row {
    const char* name;
    const char* why;
  };
  constexpr Row kDropped[] = {
      {"launcher-args", "no other launcher is started"},
      {"save-pid", "lockstep jobs lists what runs"},
      {"bind-cores-to-rank", "workers are not bound to cores"},
      {"bind-core-list", "workers are not bound to cores"},
      {"ssh-port", "write the port behind the host in the hostfile, or in ~/.ssh/config"},
      {"venv-script", "use --venv, or start lockstep in that environment"},
  };
  for (const Row& row : kDropped)
    if (split_.has(row.name))
      launch_.notes.push_back(fmt::format("--{} dropped: {}", underscored(row.name), row.why));
}

Result<Launch> Reader::run() {
  LOCKSTEP_TRY_ASSIGN(nodes_, number(split_, "num-nodes", kMostNodes));
  LOCKSTEP_TRY_ASSIGN(least_, number(split_, "min-elastic-nodes", kMostNodes));
  LOCKSTEP_TRY_ASSIGN(most_, number(split_, "max-elastic-nodes", kMostNodes));
  LOCKSTEP_TRY_ASSIGN(gpus_, number(split_, "num-gpus", kMostSlots));
  LOCKSTEP_TRY(check());
  LOCKSTEP_TRY(read_nodes());
  LOCKSTEP_TRY(read_slots());
  read_meeting();
  read_elastic();
  read_script();
  say_dropped();
  return std::move(launch_);
}

}  // namespace

Result<Launch> read_deepspeed(std::span<const std::string> words, const ReadOptions& options) {
  LOCKSTEP_TRY_ASSIGN(const SplitArguments split, split_arguments("deepspeed", kRows, words));
  return Reader(split, options).run();
}

}  // namespace lockstep::launchers
