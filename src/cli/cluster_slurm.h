// The part of lockstep cluster add, show and check that is about clusters of Slurm's.
#pragma once

#include "base/error.h"
#include "cli/cluster_options.h"
#include "cluster/registry.h"
#include "codec/json.h"

#include <string>

namespace lockstep::cli {

// Asks Slurm first: what does not answer is not added.
Result<cluster::Cluster> slurm_cluster_of(const std::string& name, const ClusterAddOptions& options,
                                          const cluster::Registry& registry, std::string& line);

Status show_slurm(const cluster::Cluster& found, const cluster::Registry& registry,
                  const ClusterShowOptions& options, nlohmann::ordered_json json);

// The exit code: 0, 1 where something would stop a job.
Result<int> check_slurm(const cluster::Cluster& found, const cluster::Registry& registry,
                        const ClusterCheckOptions& options);

}  // namespace lockstep::cli
