// The nodes that have failed lately, in the state folder, for all clusters of Slurm's.
#pragma once

#include "base/error.h"
#include "slurm/bad_nodes.h"

#include <string>
#include <vector>

namespace lockstep::slurm {

// folder: io::state_folder(). The file is made when the first failure is noted.
Status note_bad_node(const std::string& folder, const NodeFailure& failure);

// The nodes that a job should leave out now. A file that can't be read is an error; one that is
// not there is not.
Result<std::vector<BadNode>> known_bad_nodes(const std::string& folder,
                                             const std::string& slurm_cluster, std::int64_t now);

// Those that were left out until now; not_found: it was none of them.
Status forget_bad_node(const std::string& folder, const std::string& slurm_cluster,
                       const std::string& node, std::int64_t now);

}  // namespace lockstep::slurm
