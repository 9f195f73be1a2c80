#pragma once

#include "io/fd.h"

#include <cstddef>
#include <string>

namespace lockstep::io {

// Appends the available bytes of a non-blocking descriptor, until `text` has at least `limit`
// bytes.
void read_now(const Fd& fd, std::string& text, std::size_t limit);

}  // namespace lockstep::io
