// Writing a file in a folder that others can write to, such as /tmp.
#pragma once

#include "base/error.h"

#include <string>
#include <string_view>

namespace lockstep::io {

// The whole of it or nothing, mode 0644: a draft beside it under a random name takes its place.
// Whatever others have put there, links for instance, is not written through. A file that can't be
// replaced (mounted by itself, in a folder closed to us) is written in place. What is no file and
// no link to one (/dev/stderr, a fifo) is written to.
Status replace_file(const std::string& path, std::string_view bytes);

}  // namespace lockstep::io
