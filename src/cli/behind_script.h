// Finds words on the wrong side of the script: options of Lockstep that stand behind the script,
// and are therefore the script's arguments, and a value that is taken for the script.
#pragma once

#include "cli/options.h"

#include <string>

namespace lockstep::cli {

// Returns one line for the user, or an empty text. The line names the options of `table` that shape
// the job (Option::shapes_job) and stand only behind the script. Both spellings count, with '-' and
// with '_'. The script may have an option of the same name. "--" in front of the script says so,
// and then there is no hint.
std::string behind_script_hint(const Table& table, const Parsed& parsed);

// Returns one line for the user if the script may be the value of the option in front of it, as in
// "--status-page 8000 train.py": such an option takes a value only behind "=". Else an empty text.
// For a script that does not exist.
std::string value_as_script_hint(const Table& table, const Parsed& parsed);

}  // namespace lockstep::cli
