// A question as `--verbose` may show it. Pure.
#pragma once

#include "cloud/web.h"

#include <string>

namespace lockstep::cloud {

// Returns one line of method, address and body, without headers. Only the size is shown of long
// values, and of values whose names hold secrets (UserData, client_secret, ...).
std::string shown_question(const Question& question);

}  // namespace lockstep::cloud
