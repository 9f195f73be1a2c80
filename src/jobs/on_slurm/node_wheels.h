// Brings a job's wheels to a node of a Slurm job: from the node before it, else from the job's
// folder.
#pragma once

#include "base/error.h"
#include "slurm/job_folder.h"

#include <string>
#include <vector>

namespace lockstep::jobs::on_slurm {

struct NodeWheels {
  std::vector<std::string> paths = {};    // to put first on PYTHONPATH
  std::vector<std::string> modules = {};  // modules imported from there
  // The first nodes of the job that could not take the wheels. The other nodes meet without them.
  std::vector<std::string> failed_first = {};
};

// Brings the wheels to this node, found in Slurm's variables. Does nothing if the job has no
// wheels. After an error this node cannot train. The job has been told, and ends if it needs this
// node. left_out: nodes excluded by the pre-flight; nothing comes from them.
Result<NodeWheels> put_node_wheels(const slurm::JobFolder& folder,
                                   const std::vector<std::string>& left_out = {});

// Removes `names` from `nodes`, except the node at index `self`. Returns the new index of that
// node. Pure.
int leave_out(const std::vector<std::string>& names, int self, std::vector<std::string>& nodes);

}  // namespace lockstep::jobs::on_slurm
