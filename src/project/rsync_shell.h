// Stands in for ssh when rsync needs more than ssh: reaches the host like every other command,
// without a login shell.
#pragma once

#include "base/error.h"
#include "hosts/command_run.h"

#include <string>
#include <vector>

namespace lockstep::project {

// rsync hands on only words, so the place travels in this variable, as places_text() has it.
inline constexpr const char* kRsyncPlace = "LOCKSTEP_RSYNC_PLACE";

// words: the host's name, which does not matter, and the command. Returns the exit code.
Result<int> rsync_shell(const std::vector<std::string>& words);

}  // namespace lockstep::project
