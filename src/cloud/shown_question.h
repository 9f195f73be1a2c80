// Prints a question for `--verbose`, without secrets. Pure.
#pragma once

#include "cloud/web.h"

#include <string>

namespace lockstep::cloud {

// Returns a line with method, address and body, without headers. Shows only the size of a long
// value, and of a value whose name marks a secret (UserData, client_secret, ...).
std::string shown_question(const Question& question);

}  // namespace lockstep::cloud
