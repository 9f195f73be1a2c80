// Removes unfinished files of a `lockstep sync --back` that was killed.
#pragma once

#include "sync/confined.h"

#include <set>
#include <string>
#include <vector>

namespace lockstep::project {

// Removes drafts below a root, unless a running process is bringing files back there.
void drop_back_drafts(const std::string& root, const std::vector<std::string>& drafts);

// Removes all drafts in these folders of a tree. The caller holds the lock of the tree.
void drop_drafts_in(sync::Confined& tree, const std::set<std::string>& folders);

}  // namespace lockstep::project
