// Which files of a folder belong to what is sent, and what stat() says of them.
#pragma once

#include "base/error.h"
#include "sync/manifest.h"

#include <string>
#include <string_view>
#include <vector>

namespace lockstep::sync {

struct Scan {
  Manifest manifest = {};
  // What can't be sent: sockets, fifos, devices.
  std::vector<std::string> special = {};
  // What an interrupted `lockstep sync --back` has left. It is not the project's.
  std::vector<std::string> drafts = {};
  // Words for a person, such as why git was not asked.
  std::vector<std::string> remarks = {};
};

enum class By {
  git,        // git where it is there and the folder is a repository's, else our own rules
  own_rules,  // what git would say, without asking it: for tests, and for machines without git
  nothing,    // all files, whatever is ignored: a job's outputs, as --back brings them
};

// root: absolute. Git's ignore files hold, and .lockstepignore, which only takes away. .git itself
// never belongs.
Result<Scan> scan(const std::string& root, By by = By::git);

}  // namespace lockstep::sync
