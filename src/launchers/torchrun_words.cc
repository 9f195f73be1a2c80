#include "base/text.h"
#include "launchers/launcher_words.h"

#include <fmt/core.h>

#include <algorithm>

namespace lockstep::launchers {
namespace {

constexpr bool kFlag = false;

// The options of torchrun. A test in cli compares them with those of `lockstep run`.
constexpr ArgumentRow kRows[] = {
    {"nnodes"},
    {"nproc-per-node"},
    {"node-rank"},
    {"role"},
    {"master-addr"},
    {"master-port"},
    {"local-addr"},
    {"standalone", kFlag},
    {"rdzv-backend"},
    {"rdzv-endpoint"},
    {"rdzv-id"},
    {"rdzv-conf"},
    {"module", kFlag, 'm'},
    {"no-python", kFlag},
    {"run-path", kFlag},
    {"start-method"},
    {"max-restarts"},
    {"monitor-interval"},
    {"signals-to-handle"},
    {"shutdown-timeout"},
    {"event-log-handler"},
    {"log-dir"},
    {"redirects", true, 'r'},
    {"tee", true, 't'},
    {"log-line-prefix-template"},
    {"local-ranks-filter"},
    {"duplicate-stdout-filters"},
    {"duplicate-stderr-filters"},
    {"logs-specs"},
    {"virtual-local-rank", kFlag},
    {"numa-binding"},
    {"help", kFlag, 'h', {}, true},
    {"print-completion", true, 0, {}, true},
};

// Only in torch.distributed.launch.
constexpr ArgumentRow kUseEnv = {"use-env", kFlag};

// Options about nodes and their rendezvous, which a scheduler's placement replaces.
constexpr std::string_view kOfTheScheduler[] = {
    "nnodes",     "node-rank",    "master-addr",   "master-port", "local-addr",
    "standalone", "rdzv-backend", "rdzv-endpoint", "rdzv-id",     "rdzv-conf",
};

bool is_of_the_scheduler(std::string_view name) {
  return std::find(std::begin(kOfTheScheduler), std::end(kOfTheScheduler), name) !=
         std::end(kOfTheScheduler);
}

}  // namespace

std::span<const ArgumentRow> torchrun_rows() {
  return kRows;
}

Result<Launch> read_torchrun(std::span<const std::string> words, const ReadOptions& options,
                             bool legacy) {
  std::vector<ArgumentRow> rows(std::begin(kRows), std::end(kRows));
  if (legacy) rows.push_back(kUseEnv);
  LOCKSTEP_TRY_ASSIGN(
      const SplitArguments split,
      split_arguments(legacy ? "torch.distributed.launch" : "torchrun", rows, words));
  Launch launch{.launcher = Launcher::torchrun};
  std::vector<std::string> dropped;
  for (const GivenArgument& given : split.options) {
    if (given.name == "nnodes") launch.nodes.count = given.value;
    // lockstep run always sets LOCAL_RANK in the environment.
    if (given.name == kUseEnv.name) continue;
    if (options.placed_by_scheduler && is_of_the_scheduler(given.name)) {
      if (given.name != "nnodes") dropped.push_back("--" + given.name);
      continue;
    }
    const bool is_flag = std::any_of(rows.begin(), rows.end(), [&](const ArgumentRow& row) {
      return row.name == given.name && !row.takes_value;
    });
    launch.run.push_back(is_flag ? "--" + given.name
                                 : fmt::format("--{}={}", given.name, given.value));
  }
  if (!dropped.empty())
    launch.notes.push_back(join(dropped, ", ") +
                           " dropped: the scheduler says which nodes there are, and Lockstep's "
                           "agents find each other");
  launch.run.emplace_back("--");
  launch.run.insert(launch.run.end(), split.rest.begin(), split.rest.end());
  // The old launcher passes the local rank as the script's first argument.
  if (legacy && !split.has(kUseEnv.name) && !split.rest.empty())
    launch.run.insert(launch.run.end() - static_cast<std::ptrdiff_t>(split.rest.size()) + 1,
                      "--local-rank=${local_rank}");
  return launch;
}

}  // namespace lockstep::launchers
