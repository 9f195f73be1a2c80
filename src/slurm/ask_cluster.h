// Asks Slurm about a cluster: settings, partitions, nodes and nodes out of service.
#pragma once

#include "slurm/pending_reason.h"
#include "slurm/tools.h"

#include <map>
#include <string>
#include <vector>

namespace lockstep::slurm {

// Returns partitions and out-of-service nodes for explanations of a job. Never fails: a part that
// Slurm does not answer stays empty. now: Unix seconds.
Surroundings ask_surroundings(const RunTool& run, std::int64_t now);

// Parses `scontrol show config`: "KillWait" -> "5 sec". Keeps at most 4096 settings.
std::map<std::string, std::string> parse_config(std::string_view text);

struct ClusterFacts {
  std::map<std::string, std::string> config;
  std::vector<Partition> partitions;
  std::vector<NodeGroup> groups;
  std::vector<OutOfService> out;

  std::string setting(const std::string& name) const;  // empty: unknown
  std::string version() const { return setting("SLURM_VERSION"); }
  // Returns whether slurmdbd or another accounting storage is set up (it may still be down).
  bool has_accounting() const;
};

// Asks everything above and fails at the first question without an answer. Errors: those of
// ask_tool(), unavailable where Slurm does not answer.
Result<ClusterFacts> ask_cluster(const RunTool& run);

}  // namespace lockstep::slurm
