// The environment variables that a machine needs to terminate itself, besides the command.
#pragma once

#include "cloud/guard_timer.h"

#include <string>
#include <vector>

namespace lockstep::machine {

// Returns the variables of process 1 ("NAME=value") that the ending's command needs.
std::vector<std::string> variables_of(const cloud::MachineEnding& ending);

}  // namespace lockstep::machine
