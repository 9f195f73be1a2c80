// Files that `lockstep sync --back` has begun and not finished, because it was killed.
#pragma once

#include "sync/confined.h"

#include <set>
#include <string>
#include <vector>

namespace lockstep::project {

// Removes drafts below a root, but not those of a process that brings files back just now.
void drop_back_drafts(const std::string& root, const std::vector<std::string>& drafts);

// Removes all drafts in these folders of a tree. The caller holds the lock of the tree.
void drop_drafts_in(sync::Confined& tree, const std::set<std::string>& folders);

}  // namespace lockstep::project
