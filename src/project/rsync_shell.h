// Stands in for ssh when rsync needs more than ssh: reaches the host like every other command,
// without a login shell.
#pragma once

#include "base/error.h"
#include "hosts/command_run.h"

#include <string>
#include <vector>

namespace lockstep::project {

// The variable with the place, in the form of places_text(): rsync passes on nothing but words.
inline constexpr const char* kRsyncPlace = "LOCKSTEP_RSYNC_PLACE";

// Runs the command on the host of kRsyncPlace, with this process's stdin and stdout. words: a host
// name, which is ignored, and the command. Returns the exit code of the command. unavailable: the
// host was not reached. The signals of proc::handled_signals() must be blocked.
Result<int> rsync_shell(const std::vector<std::string>& words);

}  // namespace lockstep::project
