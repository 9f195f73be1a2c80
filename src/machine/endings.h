// The ways in which machines can end themselves. A provider whose machines do not power off to end
// their bill has a row here.
#pragma once

#include "cloud/guard_timer.h"

#include <string>
#include <string_view>
#include <vector>

namespace lockstep::machine {

// By MachineEnding::word; nullptr: this version does not know the word.
const cloud::MachineEnding* find_ending(std::string_view word);

// The variables of process 1 ("NAME=value") that the ending's command needs.
std::vector<std::string> variables_of(const cloud::MachineEnding& ending);

}  // namespace lockstep::machine
