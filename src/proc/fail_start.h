#pragma once

#include "base/error.h"

#include <string_view>

namespace lockstep::proc {

// What fork() and its kin say when they fail, with what to do where a limit of processes is
// reached.
Failure fail_start(std::string_view what, int sys_errno);

}  // namespace lockstep::proc
