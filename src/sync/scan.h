// Finds the project's files in a folder, with their stat() facts.
#pragma once

#include "base/error.h"
#include "sync/manifest.h"

#include <string>
#include <string_view>
#include <vector>

namespace lockstep::sync {

struct Scan {
  Manifest manifest = {};
  // Sockets, FIFOs and devices, which cannot be sent.
  std::vector<std::string> special = {};
  // Drafts of an interrupted `lockstep sync --back`. They do not belong to the project.
  std::vector<std::string> drafts = {};
  // Messages for the user, such as why git was not asked.
  std::vector<std::string> remarks = {};
};

enum class By {
  git,        // git, if installed and the folder is in a repository; else our own rules
  own_rules,  // git's rules without git: for tests and machines without git
  nothing,    // all files, ignored or not: a job's outputs, for --back
};

// Returns the project's files. root: absolute. Git's ignore files count; .lockstepignore can only
// take more files away. .git never belongs to the project.
Result<Scan> scan(const std::string& root, By by = By::git);

}  // namespace lockstep::sync
