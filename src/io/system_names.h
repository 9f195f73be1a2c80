// Names to addresses as the machine's nsswitch.conf wants it, without ever loading one of its C
// library's modules: they belong to another C library than the one this program carries inside, and
// loading them ends in a crash.
#pragma once

#include "base/error.h"
#include "io/resolve.h"

#include <string>

namespace lockstep::io {

enum class Names { digits, any };

// Blocks, unless digits are all that is asked for.
Result<Resolved> look_up(const std::string& host, int port, Names names);

}  // namespace lockstep::io
