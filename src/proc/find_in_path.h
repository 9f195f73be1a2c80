// Finds a program in the PATH of this process.
#pragma once

#include "base/environment.h"
#include "proc/spawn.h"

#include <string>

namespace lockstep::proc {

// Errors as in find_executable(). A process without PATH gets the usual folders.
inline Result<std::string> find_in_path(const std::string& name) {
  return find_executable(name, env_text("PATH", "/bin:/usr/bin"));
}

}  // namespace lockstep::proc
