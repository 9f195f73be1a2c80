// Checks the limit of open files, before anything is opened.
#pragma once

#include "base/error.h"

#include <cstddef>

namespace lockstep::io {

// Whether this process may have so many files open, its limit raised as far as allowed.
Status check_open_files(std::size_t needed);

}  // namespace lockstep::io
