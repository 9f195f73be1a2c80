// Holds a file against others on this host, until the descriptor is closed.
#pragma once

#include "base/error.h"
#include "io/fd.h"

#include <functional>
#include <string>

namespace lockstep::setup {

// waits: called once where somebody else has it.
Result<io::Fd> lock_file(const std::string& path, const std::function<void()>& waits);

}  // namespace lockstep::setup
