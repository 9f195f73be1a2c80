// The file of recent node failures in the state folder, shared by all Slurm clusters of the user.
#pragma once

#include "base/error.h"
#include "slurm/bad_nodes.h"

#include <string>
#include <vector>

namespace lockstep::slurm {

// Adds a failure under a lock, and drops failures that no longer count. folder: io::state_folder().
// Creates the file with the first failure.
Status note_bad_node(const std::string& folder, const NodeFailure& failure);

// Returns all recorded failures, of all clusters. A missing file means none.
Result<std::vector<NodeFailure>> known_failures(const std::string& folder);

// Returns the nodes that a job submitted at `now` (Unix seconds) should exclude. A missing file
// means no nodes. An unreadable file is an error.
Result<std::vector<BadNode>> known_bad_nodes(const std::string& folder,
                                             const std::string& slurm_cluster, std::int64_t now);

// Removes all failures of one node, so that jobs use the node again. Errors: not_found if the node
// is not excluded at `now`.
Status forget_bad_node(const std::string& folder, const std::string& slurm_cluster,
                       const std::string& node, std::int64_t now);

}  // namespace lockstep::slurm
