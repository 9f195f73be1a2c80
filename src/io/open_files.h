// Checks the limit of open files before anything is opened.
#pragma once

#include "base/error.h"

#include <cstddef>

namespace lockstep::io {

// Fails if this process may not open `needed` files, even with its limit raised as far as allowed.
Status check_open_files(std::size_t needed);

}  // namespace lockstep::io
