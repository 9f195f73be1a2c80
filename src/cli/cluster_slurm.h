// `lockstep cluster add`, `show` and `check` for Slurm clusters.
#pragma once

#include "base/error.h"
#include "cli/cluster_options.h"
#include "codec/json.h"
#include "hosts/registry.h"

#include <string>

namespace lockstep::cli {

// Returns the cluster to add, after asking Slurm: a cluster that does not answer is an error.
// line: receives one line about the cluster, for the user. Errors: invalid_input, not_found (no
// Slurm commands), unavailable.
Result<hosts::Cluster> slurm_cluster_of(const std::string& name, const ClusterAddOptions& options,
                                        const hosts::Registry& registry, std::string& line);

// Prints partitions, nodes out of service and excluded nodes. With --forget-node first ends the
// exclusion of a node. json: the members that all kinds of clusters have.
Status show_slurm(const hosts::Cluster& found, const hosts::Registry& registry,
                  const ClusterShowOptions& options, nlohmann::ordered_json json);

// Prints the findings. Returns 1 if a finding would stop a job, else 0.
Result<ExitCode> check_slurm(const hosts::Cluster& found, const hosts::Registry& registry,
                             const ClusterCheckOptions& options);

}  // namespace lockstep::cli
