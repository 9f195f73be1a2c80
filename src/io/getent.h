// Runs the machine's own getent to look up a name that its C library's modules may know.
#pragma once

#include "base/error.h"
#include "io/getent_command.h"

#include <optional>
#include <string>

namespace lockstep::io {

// The path of getent: from PATH, else from /usr/bin or /bin.
std::optional<std::string> find_getent();

// Blocks for 30 seconds at most. An error repeats what getent itself said.
Result<GetentAnswer> ask_getent(const std::string& program, const std::string& name);

}  // namespace lockstep::io
