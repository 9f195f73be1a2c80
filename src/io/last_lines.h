// Where the last lines of a file begin.
#pragma once

#include <cstdint>

namespace lockstep::io {

// The offset in bytes of the last `lines` lines among the first `size` bytes of a file. Reads from
// there backwards. An unfinished last line counts. 0 also where the file can't be read.
std::int64_t begin_of_last_lines(int fd, std::int64_t size, std::int64_t lines);

}  // namespace lockstep::io
