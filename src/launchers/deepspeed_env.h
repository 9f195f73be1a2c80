// Which variables DeepSpeed's launcher takes to other hosts: some of its own environment, and the
// lines of .deepspeed_env. Pure.
#pragma once

#include "base/error.h"

#include <string>
#include <string_view>
#include <vector>

namespace lockstep::launchers {

// Whether a variable of this process goes along.
bool deepspeed_exports(std::string_view name);

// "NAME=value" a line; blank lines and comments are passed over, and a pair of quotes around a
// value is no part of it. Errors name the line.
Result<std::vector<std::string>> parse_deepspeed_env(std::string_view text);

}  // namespace lockstep::launchers
