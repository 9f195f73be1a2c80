// Connecting to a socket in the file system.
#pragma once

#include "base/error.h"
#include "io/fd.h"

#include <string>

namespace lockstep::io {

// Waits for no longer than the listener's backlog makes it. Errc::unavailable: nobody listens
// there.
Result<Fd> connect_unix(const std::string& path);

}  // namespace lockstep::io
