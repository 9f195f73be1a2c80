#pragma once

#include "base/error.h"

#include <string_view>

namespace lockstep::proc {

// Returns the error of a failed fork() or clone(), with advice if a limit of processes was reached.
Failure fail_start(std::string_view what, int sys_errno);

}  // namespace lockstep::proc
