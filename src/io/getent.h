// Runs the machine's own getent to look up a name that its C library's modules may know.
#pragma once

#include "base/error.h"
#include "io/getent_command.h"

#include <optional>
#include <string>

namespace lockstep::io {

// The program's path: in PATH, else where it usually is.
std::optional<std::string> find_getent();

// Blocks, 30 seconds at most. An Error says what getent itself said.
Result<GetentAnswer> ask_getent(const std::string& program, const std::string& name);

}  // namespace lockstep::io
