// Finds options of Lockstep that stand behind the script and are therefore the script's arguments.
#pragma once

#include "cli/options.h"

#include <string>

namespace lockstep::cli {

// Returns one line for a person, or an empty text. It names the options of `table` that decide
// where or how wide a job runs (Option::shapes_job), that were not given in front of the script,
// and that stand behind it in either spelling. A script may have an option of that name itself:
// "--" in front of the script says so and ends the hint.
std::string behind_script_hint(const Table& table, const Parsed& parsed);

}  // namespace lockstep::cli
