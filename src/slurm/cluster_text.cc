#include "slurm/cluster_text.h"

#include "base/columns.h"
#include "base/text.h"
#include "slurm/words.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <utility>

namespace lockstep::slurm {
namespace {

constexpr std::size_t kColumns = 7;
using Row = std::array<std::string, kColumns>;

std::string gpus_text(const std::vector<GpuKind>& gpus) {
  std::vector<std::string> parts;
  parts.reserve(gpus.size());
  for (const GpuKind& each : gpus)
    parts.push_back(each.type.empty() ? std::to_string(each.count)
                                      : fmt::format("{} {}", each.count, printable(each.type)));
  return parts.empty() ? "-" : join(parts, ", ");
}

// Whole GB are precise enough above 10 GB.
std::string gib_text(std::int64_t megabytes) {
  return megabytes < 10240 ? fmt::format("{} MB", megabytes)
                           : fmt::format("{} GB", megabytes / 1024);
}

std::string range_text(const std::string& least, const std::string& most) {
  return least == most ? least : least + " to " + most;
}

std::string states_text(const PartitionSummary& partition) {
  std::vector<std::string> parts;
  for (const auto& [state, count] : partition.states)
    parts.push_back(fmt::format("{} {}", count, printable(state)));
  return fmt::format("{}: {}", printable(to_lower(partition.state)), join(parts, ", "));
}

// Returns the entry of a group's partition, and creates it at the first group. sinfo prints a line
// per group of equal nodes, so a partition has several.
PartitionSummary& summary_of(std::vector<PartitionSummary>& all, const NodeGroup& group,
                             const ClusterFacts& facts) {
  const auto found = std::find_if(all.begin(), all.end(), [&](const PartitionSummary& each) {
    return each.name == group.partition;
  });
  if (found != all.end()) return *found;
  PartitionSummary made;
  made.name = group.partition;
  made.is_default = group.is_default;
  made.state = to_upper(group.availability);
  made.max_time = group.time_limit;
  made.least_cpus = group.cpus;
  made.least_memory_mb = group.memory_mb;
  // scontrol prints the state in full; sinfo shortens it ("inact").
  for (const Partition& each : facts.partitions)
    if (each.name == made.name && !each.state.empty()) made.state = each.state;
  all.push_back(std::move(made));
  return all.back();
}

// Adds a group of equal nodes to its partition. Down nodes count in `nodes`, but not in
// `in_service`.
void add_group(PartitionSummary& partition, const NodeGroup& group) {
  if (group.count == 0) return;
  // The minimums start with the first group that has nodes.
  if (partition.nodes == 0) {
    partition.least_cpus = group.cpus;
    partition.least_memory_mb = group.memory_mb;
  }
  partition.nodes += group.count;
  if (is_in_service(group.state)) partition.in_service += group.count;
  partition.least_cpus = std::min(partition.least_cpus, group.cpus);
  partition.most_cpus = std::max(partition.most_cpus, group.cpus);
  partition.least_memory_mb = std::min(partition.least_memory_mb, group.memory_mb);
  partition.most_memory_mb = std::max(partition.most_memory_mb, group.memory_mb);
  for (const GpuKind& gpu : group.gpus)
    if (std::find(partition.gpus.begin(), partition.gpus.end(), gpu) == partition.gpus.end())
      partition.gpus.push_back(gpu);
  const auto same = std::find_if(partition.states.begin(), partition.states.end(),
                                 [&](const auto& each) { return each.first == group.state; });
  if (same == partition.states.end())
    partition.states.emplace_back(group.state, group.count);
  else
    same->second += group.count;
}

}  // namespace

std::vector<PartitionSummary> summarize(const ClusterFacts& facts) {
  std::vector<PartitionSummary> all;
  for (const NodeGroup& group : facts.groups)
    add_group(summary_of(all, group, facts), group);
  return all;
}

std::string cluster_text(const ClusterFacts& facts) {
  std::vector<Row> rows = {{"PARTITION", "NODES", "GPUS", "CPUS", "MEMORY", "TIME", "STATE"}};
  for (const PartitionSummary& each : summarize(facts))
    rows.push_back({printable(each.name) + (each.is_default ? "*" : ""), std::to_string(each.nodes),
                    gpus_text(each.gpus),
                    range_text(std::to_string(each.least_cpus), std::to_string(each.most_cpus)),
                    range_text(gib_text(each.least_memory_mb), gib_text(each.most_memory_mb)),
                    each.max_time ? duration_text(*each.max_time) : "no limit", states_text(each)});
  std::string text = columns_text(rows);
  for (const OutOfService& each : facts.out)
    text +=
        fmt::format("out of service: {} ({}{}): {}\n", printable(each.nodes), printable(each.state),
                    each.since ? " since " + moment_text(*each.since) : "", printable(each.reason));
  return text;
}

nlohmann::ordered_json cluster_json(const ClusterFacts& facts) {
  nlohmann::ordered_json partitions = nlohmann::ordered_json::array();
  for (const PartitionSummary& each : summarize(facts)) {
    nlohmann::ordered_json gpus = nlohmann::ordered_json::array();
    for (const GpuKind& gpu : each.gpus)
      gpus.push_back({{"type", printable(gpu.type)}, {"count", gpu.count}});
    nlohmann::ordered_json states = nlohmann::ordered_json::object();
    for (const auto& [state, count] : each.states)
      states[printable(state)] = count;
    partitions.push_back(
        {{"name", printable(each.name)},
         {"default", each.is_default},
         {"state", printable(each.state)},
         {"nodes", each.nodes},
         {"in_service", each.in_service},
         {"gpus", std::move(gpus)},
         {"cpus", {each.least_cpus, each.most_cpus}},
         {"memory_mb", {each.least_memory_mb, each.most_memory_mb}},
         {"max_seconds", each.max_time ? nlohmann::ordered_json(*each.max_time) : nullptr},
         {"states", std::move(states)}});
  }
  nlohmann::ordered_json out = nlohmann::ordered_json::array();
  for (const OutOfService& each : facts.out)
    out.push_back({{"nodes", printable(each.nodes)},
                   {"state", printable(each.state)},
                   {"since", each.since ? nlohmann::ordered_json(*each.since) : nullptr},
                   {"reason", printable(each.reason)}});
  return {{"version", printable(facts.version())},
          {"cluster", printable(facts.setting("ClusterName"))},
          {"accounting", facts.has_accounting()},
          {"partitions", std::move(partitions)},
          {"out_of_service", std::move(out)}};
}

std::string cluster_line(const ClusterFacts& facts) {
  const auto partitions = summarize(facts);
  return fmt::format("Slurm {}, {} {}", printable(facts.version()), partitions.size(),
                     partitions.size() == 1 ? "partition" : "partitions");
}

}  // namespace lockstep::slurm
