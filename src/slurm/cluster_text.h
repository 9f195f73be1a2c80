// A cluster of Slurm's for people and for programs, and what would stop a job there. Pure.
#pragma once

#include "codec/json.h"
#include "slurm/ask_cluster.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::slurm {

// All of a partition's nodes together.
struct PartitionSummary {
  std::string name;
  bool is_default = false;
  std::string state;  // UP, DOWN, DRAIN, INACTIVE
  std::int64_t nodes = 0;
  std::int64_t in_service = 0;
  std::vector<GpuKind> gpus;  // the kinds that some node has
  int least_cpus = 0;         // of a node
  int most_cpus = 0;
  std::int64_t least_memory_mb = 0;
  std::int64_t most_memory_mb = 0;
  std::optional<std::int64_t> max_time;
  std::vector<std::pair<std::string, std::int64_t>> states;  // "idle" 3, "drained" 1
};

std::vector<PartitionSummary> summarize(const ClusterFacts& facts);

std::string cluster_text(const ClusterFacts& facts);
nlohmann::ordered_json cluster_json(const ClusterFacts& facts);
// "Slurm 22.05.8, 3 partitions, 4 nodes, 32 GPUs".
std::string cluster_line(const ClusterFacts& facts);

struct ClusterFinding {
  bool stops_jobs = true;  // false: it may
  std::string_view what;   // a word for programs: "partition-down"
  std::string text;
  std::string cure;
};

// What the answers to some questions tell.
struct ClusterProbe {
  std::optional<ClusterFacts> facts;  // nullopt: Slurm does not answer, see `error`
  std::string error;
  std::string ping;      // of scontrol ping
  std::string refusal;   // what sbatch --test-only said against a job of one node; empty: nothing
  bool has_srun = true;  // srun and sbatch are there
  std::string sacct_error;  // accounting is set up, but does not answer
};

ClusterProbe probe_cluster(const RunTool& run);
std::vector<ClusterFinding> findings_of(const ClusterProbe& probe);

}  // namespace lockstep::slurm
