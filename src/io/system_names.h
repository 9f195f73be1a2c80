// Turns names into addresses as the machine's nsswitch.conf asks, without ever loading a module of
// the machine's C library: this program carries a C library of its own inside, and a module that
// belongs to another one would crash it.
#pragma once

#include "base/error.h"
#include "io/resolve.h"

#include <string>

namespace lockstep::io {

enum class Names { digits, any };

// Blocks, unless `names` is `digits`.
Result<Resolved> look_up(const std::string& host, int port, Names names);

}  // namespace lockstep::io
