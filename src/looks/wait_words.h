// What a thread waits for in the kernel, in a word.
#pragma once

#include "looks/process_look.h"

#include <string_view>

namespace lockstep::looks {

// Returns "sleep", "lock", "poll", "pipe" and the like by the kernel function, or by the system
// call where the kernel hides the function. "": unknown.
std::string_view wait_word(const ProcessLook& process);

}  // namespace lockstep::looks
