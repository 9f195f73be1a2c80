// Excludes nodes with recent failures from submitted jobs.
#pragma once

#include "slurm/bad_nodes.h"
#include "slurm/job_plan.h"

#include <string>
#include <vector>

namespace lockstep::jobs::on_slurm {

// Adds the bad nodes of this machine's Slurm to the wish's --exclude. Leaves the wish as it is if
// Slurm would refuse the job only because of that. Returns a note for people, or "". Slurm is asked
// only if a bad node is known.
std::string leave_out_bad_nodes(slurm::JobWish& wish);

// Returns the settings with --exclude for `names`, on top of what is excluded already. Nodes that
// the user names with --nodelist are not excluded. added: receives the newly excluded names. Pure.
std::vector<slurm::Setting> with_excluded(const std::vector<slurm::Setting>& settings,
                                          const std::vector<std::string>& names,
                                          std::vector<std::string>& added);

}  // namespace lockstep::jobs::on_slurm
