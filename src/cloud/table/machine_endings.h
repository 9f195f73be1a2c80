// The ways in which machines can end themselves. A provider whose machines do not power off to end
// their bill has a row here.
#pragma once

#include "cloud/guard_timer.h"

#include <string_view>

namespace lockstep::cloud::table {

// Finds a way by MachineEnding::word. nullptr: this version does not know the word.
const MachineEnding* find_ending(std::string_view word);

}  // namespace lockstep::cloud::table
