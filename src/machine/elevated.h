// Commands that must be root's.
#pragma once

#include "base/error.h"
#include "proc/tool_output.h"

#include <string>
#include <vector>

namespace lockstep::machine {

// Runs it as root: as it is where this process is root's, else by sudo, which must not ask for a
// password. denied: it asks for one, or is not there.
Result<proc::ToolOutput> run_as_root(std::vector<std::string> argv,
                                     const proc::ToolLimits& limits = {});
// Whether that would go.
Status may_be_root();

// A script for /bin/sh, by this process itself, which is root's. An error shows its last words.
Status run_script(const std::string& script,
                  std::vector<std::string> environment = proc::own_environment());

// What process 1 has of a container's provider: "RUNPOD_POD_ID=...".
std::vector<std::string> pod_environment();

}  // namespace lockstep::machine
