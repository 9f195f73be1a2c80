// Runs the machine's own getent, for names that only modules of its C library can look up.
#pragma once

#include "base/error.h"
#include "io/getent_command.h"

#include <optional>
#include <string>

namespace lockstep::io {

// Returns the path of getent: from PATH, else from /usr/bin or /bin. nullopt: not found.
std::optional<std::string> find_getent();

// Looks up a name. Blocks for at most 30 seconds. An error repeats getent's own message.
Result<GetentAnswer> ask_getent(const std::string& program, const std::string& name);

}  // namespace lockstep::io
