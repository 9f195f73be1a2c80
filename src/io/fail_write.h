// The error of a failed write.
#pragma once

#include "base/error.h"

#include <string>

namespace lockstep::io {

// Returns the error. If the disk or a quota is full and the path is absolute, the text is "no space
// left on HOST:PATH".
[[nodiscard]] Failure fail_write(const std::string& path, int sys_errno);

}  // namespace lockstep::io
