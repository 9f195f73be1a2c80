// Runs commands as root.
#pragma once

#include "base/error.h"
#include "proc/tool_output.h"

#include <string>
#include <vector>

namespace lockstep::machine {

// Runs a command as root: directly if this process is root, else by sudo, which must not ask for a
// password. denied: sudo asks for one or is not installed.
Result<proc::ToolOutput> run_as_root(std::vector<std::string> argv,
                                     const proc::ToolLimits& limits = {});

// Runs a script with /bin/sh as the current user, who must be root. The error has the last line of
// stderr.
Status run_script(const std::string& script,
                  std::vector<std::string> environment = proc::own_environment());

}  // namespace lockstep::machine
