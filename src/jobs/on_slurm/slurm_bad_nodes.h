// Excludes nodes with recent failures from submitted jobs. Batch steps record failures in the home
// that the login host sees, so clients elsewhere ask the login host.
#pragma once

#include "hosts/command_run.h"
#include "jobs/on_slurm/slurm_world.h"
#include "slurm/bad_nodes.h"
#include "slurm/job_plan.h"

#include <cstdint>
#include <string>
#include <vector>

namespace lockstep::jobs::on_slurm {

// Adds the bad nodes of this machine's Slurm to the wish's --exclude. Leaves the wish as it is if
// Slurm would refuse the job only because of that. Returns a note for people, or "". Slurm is asked
// only if a bad node is known.
std::string leave_out_bad_nodes(slurm::JobWish& wish, const SlurmWorld& world = {});

// Returns the nodes that a job submitted at this place now would exclude. cluster: Slurm's own
// name. now: Unix seconds. Errors: unavailable, or the file there cannot be read.
Result<std::vector<slurm::BadNode>> bad_nodes_at(
    const hosts::HostPlace& place, const std::string& cluster, std::int64_t now,
    const hosts::RunCommand& run_command = hosts::over_links());

// Lets jobs that are submitted at this place use the node again. not_found: no job excludes it.
Status forget_bad_node_at(const hosts::HostPlace& place, const std::string& cluster,
                          const std::string& node, std::int64_t now,
                          const hosts::RunCommand& run_command = hosts::over_links());

// The login host's end of the two. words: "bad-nodes", or "forget-node CLUSTER NODE". Returns the
// text for stdout.
Result<std::string> serve_bad_nodes(const std::vector<std::string>& words);

// Returns the settings with --exclude for `names`, on top of what is excluded already. Nodes that
// the user names with --nodelist are not excluded. added: receives the newly excluded names. Pure.
std::vector<slurm::Setting> with_excluded(const std::vector<slurm::Setting>& settings,
                                          const std::vector<std::string>& names,
                                          std::vector<std::string>& added);

}  // namespace lockstep::jobs::on_slurm
