// Words for a program on a host that did not succeed. Pure.
#pragma once

#include "link/channel.h"

#include <string>
#include <string_view>

namespace lockstep::hosts {

// Returns "PROGRAM exited with code 3" or "PROGRAM was killed by SIGKILL". For a refusal and a lost
// link, returns the reason alone, because the program never ran or its end is unknown.
std::string end_words(std::string_view program, const link::ChannelEnd& end);

}  // namespace lockstep::hosts
