// Jobs that are submitted leave the nodes out that have failed lately.
#pragma once

#include "slurm/bad_nodes.h"
#include "slurm/job_plan.h"

#include <string>
#include <vector>

namespace lockstep::jobs::on_slurm {

// Adds those of this machine's Slurm to the wish's --exclude, unless Slurm would refuse the job
// then that it takes otherwise. A note for people, empty where there are none. Slurm is asked only
// where a bad node is known.
std::string leave_out_bad_nodes(slurm::JobWish& wish);

// With --exclude for `names`, on top of what is excluded already; nodes that the user names with
// --nodelist are not. added: those that were. Pure.
std::vector<slurm::Setting> with_excluded(const std::vector<slurm::Setting>& settings,
                                          const std::vector<std::string>& names,
                                          std::vector<std::string>& added);

}  // namespace lockstep::jobs::on_slurm
