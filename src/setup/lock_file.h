// Locks a file against other processes on this host, until the returned descriptor is closed.
#pragma once

#include "base/error.h"
#include "io/fd.h"

#include <functional>
#include <string>

namespace lockstep::setup {

// Creates the file if needed, and waits for the lock without a limit. Calls `waits` once if another
// process has the lock.
Result<io::Fd> lock_file(const std::string& path, const std::function<void()>& waits);

}  // namespace lockstep::setup
