// A node of a Slurm job gets the job's wheels: from the node before it, else from the job's folder.
#pragma once

#include "base/error.h"
#include "slurm/job_folder.h"

#include <string>
#include <vector>

namespace lockstep::jobs::on_slurm {

struct NodeWheels {
  std::vector<std::string> paths = {};    // for the front of PYTHONPATH
  std::vector<std::string> modules = {};  // that were imported from there
  // The first nodes of the job that could not take the wheels: the others meet without them.
  std::vector<std::string> failed_first = {};
};

// Of the node that this process is on, by Slurm's variables. Nothing to do where the job has no
// wheels. An error: this node can't train; it has been said to the job, which ends where it can't
// do without this node. left_out: nodes that the pre-flight has sent away: nothing comes from them.
Result<NodeWheels> put_node_wheels(const slurm::JobFolder& folder,
                                   const std::vector<std::string>& left_out = {});

// Takes `names` out of `nodes`, but for the one at `self`; returns where that is then. Pure.
int leave_out(const std::vector<std::string>& names, int self, std::vector<std::string>& nodes);

}  // namespace lockstep::jobs::on_slurm
