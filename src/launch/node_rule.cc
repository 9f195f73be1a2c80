// How many nodes, and whether a scheduler is to be asked for them.
#include "base/text.h"
#include "launch/rules.h"

#include <fmt/core.h>

#include <algorithm>

namespace lockstep::launch {
namespace {

Result<int> node_count(std::string_view text) {
  const auto count = parse_int(text);
  if (!count)
    return fail(
        Errc::invalid_input,
        fmt::format("--nnodes: invalid literal for int() with base 10: '{}'", printable(text)),
        "--nnodes takes a number, or MIN:MAX");
  constexpr std::int64_t kMost = 1'000'000;
  return static_cast<int>(std::clamp(*count, -kMost, kMost));
}

Status read_nnodes(const std::string& text, LaunchConfig& config) {
  const std::vector<std::string> ends = split(text, ':');
  if (ends.size() > 2)
    return fail(Errc::invalid_input,
                fmt::format("nnodes={} is not in \"MIN:MAX\" format", printable(text)));
  LOCKSTEP_TRY_ASSIGN(config.min_nodes, node_count(ends.front()));
  LOCKSTEP_TRY_ASSIGN(config.max_nodes, node_count(ends.back()));
  if (config.min_nodes >= 1 && config.min_nodes <= config.max_nodes) return {};
  return fail(Errc::invalid_input,
              fmt::format("min_nodes must be > 0 and <= max_nodes, got min_nodes={}, max_nodes={}",
                          config.min_nodes, config.max_nodes));
}

// torchrun knows no scheduler, so under its name we ask none. A worker that starts us (for an
// evaluation, say) still has its own job's scheduler variables, which say nothing about ours.
bool asks_scheduler(const RawOptions& raw, const Facts& facts, const LaunchConfig& config) {
  if (raw.standalone || raw.called_torchrun || raw.legacy_launch) return false;
  if (facts.env("TORCHELASTIC_RUN_ID")) return false;
  return !raw.nnodes || config.max_nodes > 1;
}

Failure several_tasks(const Placement& placement) {
  return fail(Errc::invalid_input,
              fmt::format("{} started several tasks on a node, and each would start workers of its "
                          "own for all of that node's devices",
                          placement.scheduler),
              placement.scheduler == "Slurm"
                  ? "use srun --ntasks-per-node=1, or --nnodes 1 if every task is a job of its own"
                  : "start one a node, or use --nnodes 1 if every task is a job of its own");
}

}  // namespace

Result<std::optional<Placement>> apply_nodes(const RawOptions& raw, const Facts& facts,
                                             LaunchConfig& config) {
  LOCKSTEP_TRY(read_nnodes(raw.nnodes.value_or("1:1"), config));
  if (!asks_scheduler(raw, facts, config)) return std::nullopt;
  LOCKSTEP_TRY_ASSIGN(auto placement, read_placement(facts));
  if (raw.nnodes) {
    const bool fits = placement && placement->one_task_per_node;
    return fits && placement->nodes >= config.min_nodes ? placement : std::nullopt;
  }
  if (!placement) {
    if (const int nodes = unused_slurm_nodes(facts); nodes > 1)
      config.warnings.push_back(
          fmt::format("Slurm gave this job {} nodes, but this is none of srun's tasks: only this "
                      "node is used (to use all: srun --ntasks-per-node=1 lockstep run ...)",
                      nodes));
    return std::nullopt;
  }
  if (!placement->one_task_per_node) return several_tasks(*placement);
  if (placement->nodes == 1) return std::nullopt;
  config.min_nodes = config.max_nodes = placement->nodes;
  config.origins["nnodes"] = {Origin::Kind::scheduler, placement->nodes_from};
  return placement;
}

}  // namespace lockstep::launch
