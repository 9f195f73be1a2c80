// Tells which variables DeepSpeed's launcher takes to other hosts: some of its own environment, and
// the lines of .deepspeed_env. Pure.
#pragma once

#include "base/error.h"

#include <string>
#include <string_view>
#include <vector>

namespace lockstep::launchers {

// Returns whether DeepSpeed exports a variable of its own environment.
bool deepspeed_exports(std::string_view name);

// Parses lines "NAME=value". Skips blank lines and comments, and removes a pair of quotes around a
// value. Errors: invalid_input names the line.
Result<std::vector<std::string>> parse_deepspeed_env(std::string_view text);

}  // namespace lockstep::launchers
