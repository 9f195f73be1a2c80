#pragma once

#include "io/fd.h"

#include <cstddef>
#include <string>

namespace lockstep::io {

// Appends what a non-blocking descriptor has now, until the text is at least `limit` bytes long.
void read_now(const Fd& fd, std::string& text, std::size_t limit);

}  // namespace lockstep::io
