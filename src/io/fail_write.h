// The error of a file that could not be written.
#pragma once

#include "base/error.h"

#include <string>

namespace lockstep::io {

// Why a file could not be written: "no space left on HOST:PATH" where the disk or a quota is full
// and the path is absolute.
[[nodiscard]] Failure fail_write(const std::string& path, int sys_errno);

}  // namespace lockstep::io
