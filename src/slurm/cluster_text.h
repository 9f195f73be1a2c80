// Prints a Slurm cluster for people and programs, and finds what would stop a job there. Pure
// except probe_cluster().
#pragma once

#include "codec/json.h"
#include "slurm/ask_cluster.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::slurm {

// A partition with sums over all nodes.
struct PartitionSummary {
  std::string name;
  bool is_default = false;
  std::string state;  // UP, DOWN, DRAIN, INACTIVE
  std::int64_t nodes = 0;
  std::int64_t in_service = 0;
  std::vector<GpuKind> gpus;  // every kind found on any node
  int least_cpus = 0;         // per node
  int most_cpus = 0;
  std::int64_t least_memory_mb = 0;
  std::int64_t most_memory_mb = 0;
  std::optional<std::int64_t> max_time;
  std::vector<std::pair<std::string, std::int64_t>> states;  // {"idle", 3}
};

// Returns a summary per partition, in sinfo's order.
std::vector<PartitionSummary> summarize(const ClusterFacts& facts);

std::string cluster_text(const ClusterFacts& facts);
nlohmann::ordered_json cluster_json(const ClusterFacts& facts);
// Returns one line: "Slurm 22.05.8, 3 partitions".
std::string cluster_line(const ClusterFacts& facts);

struct ClusterFinding {
  bool stops_jobs = true;  // false: the finding affects some jobs only
  std::string_view what;   // stable name for programs: "partition-down"
  std::string text;
  std::string cure;
};

// Answers of Slurm's programs, as findings_of() needs them.
struct ClusterProbe {
  std::optional<ClusterFacts> facts;  // nullopt: Slurm does not answer; `error` says why
  std::string error;
  std::string ping;         // output of scontrol ping
  std::string refusal;      // sbatch --test-only's refusal of a one-node job; empty: accepted
  bool has_srun = true;     // srun and sbatch can be run
  std::string sacct_error;  // set if accounting is set up but does not answer
};

// Asks Slurm everything that findings_of() needs. Blocks.
ClusterProbe probe_cluster(const RunTool& run);
// Returns the problems that stop jobs or may surprise users.
std::vector<ClusterFinding> findings_of(const ClusterProbe& probe);

}  // namespace lockstep::slurm
