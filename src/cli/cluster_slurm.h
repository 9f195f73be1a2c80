// The part of lockstep cluster add, show and check that is about clusters of Slurm's.
#pragma once

#include "base/error.h"
#include "cli/cluster_options.h"
#include "codec/json.h"
#include "hosts/registry.h"

#include <string>

namespace lockstep::cli {

// Asks Slurm first: a cluster that does not answer is not added.
Result<hosts::Cluster> slurm_cluster_of(const std::string& name, const ClusterAddOptions& options,
                                        const hosts::Registry& registry, std::string& line);

Status show_slurm(const hosts::Cluster& found, const hosts::Registry& registry,
                  const ClusterShowOptions& options, nlohmann::ordered_json json);

// The exit code: 0, 1 where something would stop a job.
Result<ExitCode> check_slurm(const hosts::Cluster& found, const hosts::Registry& registry,
                             const ClusterCheckOptions& options);

}  // namespace lockstep::cli
