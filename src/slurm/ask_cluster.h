// Asks Slurm about the cluster: its nodes, partitions, what is out of service.
#pragma once

#include "slurm/pending_reason.h"
#include "slurm/tools.h"

#include <map>
#include <string>
#include <vector>

namespace lockstep::slurm {

// What is around a job. What can't be learned is left out: an explanation does without.
Surroundings ask_surroundings(const RunTool& run, std::int64_t now);

// `scontrol show config`: "KillWait" -> "5 sec".
std::map<std::string, std::string> parse_config(std::string_view text);

struct ClusterFacts {
  std::map<std::string, std::string> config;
  std::vector<Partition> partitions;
  std::vector<NodeGroup> groups;
  std::vector<OutOfService> out;

  std::string setting(const std::string& name) const;  // empty: not known
  std::string version() const { return setting("SLURM_VERSION"); }
  bool has_accounting() const;
};

// Errors as of ask_tool(): unavailable where Slurm does not answer.
Result<ClusterFacts> ask_cluster(const RunTool& run);

}  // namespace lockstep::slurm
