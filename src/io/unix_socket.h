// Connects to a socket in the file system.
#pragma once

#include "base/error.h"
#include "io/fd.h"

#include <string>

namespace lockstep::io {

// Connects. Waits only while the listener's backlog is full. Fails with Errc::unavailable if no
// program listens.
Result<Fd> connect_unix(const std::string& path);

}  // namespace lockstep::io
