// A question as `--verbose` may show it: pure.
#pragma once

#include "cloud/web.h"

#include <string>

namespace lockstep::cloud {

// One line: method, address and body. No header is in it; of names that hold secrets (UserData,
// client_secret, ...) and of values that are long only the size is shown.
std::string shown_question(const Question& question);

}  // namespace lockstep::cloud
