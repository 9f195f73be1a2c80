// What rsync starts in place of ssh: it reaches the host over the connection that is kept, as every
// other command does, so that neither login shells nor ssh settings come between.
#pragma once

#include "base/error.h"
#include "cluster/command_run.h"

#include <string>
#include <string_view>
#include <vector>

namespace lockstep::cluster {

// rsync hands on only words, so the place travels in this variable.
inline constexpr const char* kRsyncPlace = "LOCKSTEP_RSYNC_PLACE";

std::string place_text(const HostPlace& place);
Result<HostPlace> parse_place_text(std::string_view text);

// words: the host's name, which does not matter, and the command. Returns the exit code.
Result<int> rsync_shell(const std::vector<std::string>& words);

}  // namespace lockstep::cluster
