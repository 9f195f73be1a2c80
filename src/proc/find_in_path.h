// Finds a program in the PATH of this process, and the PATH of another one.
#pragma once

#include "base/environment.h"
#include "proc/spawn.h"

#include <string>
#include <vector>

namespace lockstep::proc {

// Errors as in find_executable(). A process without PATH gets the usual folders.
inline Result<std::string> find_in_path(const std::string& name) {
  return find_executable(name, env_text("PATH", "/bin:/usr/bin"));
}

// Returns the value of PATH among "NAME=value"; without one, the usual folders.
inline std::string path_in(const std::vector<std::string>& environment) {
  for (const std::string& entry : environment)
    if (entry.starts_with("PATH=")) return entry.substr(5);
  return "/usr/local/bin:/usr/bin:/bin";
}

}  // namespace lockstep::proc
