// Applies the options about the number of nodes, and decides whether a scheduler is asked.
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
  // Numbers beyond fail in later checks, so clamping is enough.
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

// Returns whether the scheduler is asked. torchrun knows no scheduler, so not under its name. A
// worker that starts another job (an evaluation, say) still has the variables of its own job's
// scheduler, which say nothing about the new job.
bool asks_scheduler(const RawOptions& raw, const Facts& facts, const LaunchConfig& config) {
  if (raw.standalone || raw.called_torchrun || raw.legacy_launch) return false;
  if (facts.env("TORCHELASTIC_RUN_ID")) return false;
  return !raw.nnodes || !config.alone();
}

Status read_spares(const RawOptions& raw, LaunchConfig& config) {
  constexpr std::int64_t kMost = 32'000;
  if (raw.spares && (*raw.spares < 0 || *raw.spares > kMost))
    return fail(
        Errc::invalid_input,
        fmt::format("--spares must be a number of nodes from 0 to {}, got {}", kMost, *raw.spares));
  config.spares = static_cast<int>(raw.spares.value_or(0));
  return {};
}

Failure spares_of_what(const LaunchConfig& config) {
  return fail(Errc::invalid_input,
              fmt::format("--spares {}: no scheduler says how many nodes there are", config.spares),
              "give --nnodes, too: the nodes that train, without the spares");
}

// Checks that the scheduler has enough nodes for the job and its spares.
Status check_spares(const Placement& placement, const LaunchConfig& config) {
  if (config.spares == 0 || placement.nodes >= config.min_nodes + config.spares) return {};
  return fail(
      Errc::invalid_input,
      fmt::format("--spares {} leaves too few nodes: {}{} has {} ({}), and the job needs at "
                  "least {}",
                  config.spares, placement.scheduler,
                  placement.job.empty() ? "" : "'s " + placement.job, placement.nodes,
                  placement.nodes_from, config.min_nodes),
      "ask the scheduler for more nodes, or give fewer --spares");
}

// A common mistake: srun without --ntasks-per-node=1 starts an agent per GPU.
Failure several_tasks(const Placement& placement) {
  return fail(Errc::invalid_input,
              fmt::format("{} started several tasks on a node, and each task would start workers "
                          "for all devices of the node",
                          placement.scheduler),
              placement.scheduler == "Slurm"
                  ? "use srun --ntasks-per-node=1, or --nnodes 1 if every task is a separate job"
                  : "start one task per node, or use --nnodes 1 if every task is a separate job");
}

}  // namespace

Result<std::optional<Placement>> apply_nodes(const RawOptions& raw, const Facts& facts,
                                             LaunchConfig& config) {
  LOCKSTEP_TRY(read_nnodes(raw.nnodes.value_or("1:1"), config));
  LOCKSTEP_TRY(read_spares(raw, config));
  if (!asks_scheduler(raw, facts, config)) {
    if (config.spares > 0 && !raw.nnodes && !raw.standalone) return spares_of_what(config);
    return std::nullopt;
  }
  LOCKSTEP_TRY_ASSIGN(auto placement, read_placement(facts));
  if (raw.nnodes) {
    // The user's --nnodes wins. The scheduler's place to meet is used only if enough of its nodes
    // take part.
    const bool fits = placement && placement->one_task_per_node;
    if (fits) LOCKSTEP_TRY(check_spares(*placement, config));
    return fits && placement->nodes >= config.min_nodes ? placement : std::nullopt;
  }
  if (!placement) {
    if (config.spares > 0) return spares_of_what(config);
    if (const int nodes = unused_slurm_nodes(facts); nodes > 1)
      config.warnings.push_back(
          fmt::format("Slurm gave this job {} nodes, but this is none of srun's tasks: only this "
                      "node is used (to use all: srun --ntasks-per-node=1 lockstep run ...)",
                      nodes));
    return std::nullopt;
  }
  if (!placement->one_task_per_node) return several_tasks(*placement);
  LOCKSTEP_TRY(check_spares(*placement, config));
  if (placement->nodes == 1) return std::nullopt;
  config.min_nodes = config.max_nodes = placement->nodes - config.spares;
  config.origins["nnodes"] = {
      Origin::Kind::scheduler,
      config.spares == 0
          ? placement->nodes_from
          : fmt::format("{} less --spares {}", placement->nodes_from, config.spares)};
  return placement;
}

}  // namespace lockstep::launch
