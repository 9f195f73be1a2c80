// Looks up names in the way that the machine's nsswitch.conf asks for, without ever loading a
// module of the machine's C library. This program contains a C library of its own, and a module of
// another one would crash it.
#pragma once

#include "base/error.h"
#include "io/resolve.h"

#include <string>

namespace lockstep::io {

enum class Names { digits, any };

// Looks up a host. Blocks, unless `names` is `digits`.
Result<Resolved> look_up(const std::string& host, int port, Names names);

}  // namespace lockstep::io
