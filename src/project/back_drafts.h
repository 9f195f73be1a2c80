// Removes unfinished files that a killed `lockstep sync --back` left here.
#pragma once

#include "sync/confined.h"

#include <set>
#include <string>
#include <vector>

namespace lockstep::project {

// Returns the folder of a path: "a" for "a/b", "" for "b".
std::string folder_of(const std::string& path);

// Removes the drafts below a root, except in folders where a running process is bringing files
// back. drafts: paths relative to the root.
void drop_back_drafts(const std::string& root, const std::vector<std::string>& drafts);

// Removes all drafts in these folders of a tree ("" is the root). The caller holds the lock of the
// tree (TreeLocks::take_back()). Errors are ignored: a draft that stays is harmless.
void drop_drafts_in(sync::Confined& tree, const std::set<std::string>& folders);

}  // namespace lockstep::project
