// Writes a file in a folder that others can write to, such as /tmp.
#pragma once

#include "base/error.h"

#include <string>
#include <string_view>

namespace lockstep::io {

// Writes all of it or nothing, mode 0644: a draft under a random name beside the file takes its
// place. A link that others have put there is replaced, not followed. A file that can't be replaced
// (because it is a mount, or its folder is closed to us) is written in place. Anything that is no
// file and no link to one (/dev/stderr, a fifo) is written to directly.
Status replace_file(const std::string& path, std::string_view bytes);

}  // namespace lockstep::io
