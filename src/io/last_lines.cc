#include "io/last_lines.h"

#include "base/last_line.h"

#include <unistd.h>

#include <algorithm>
#include <vector>

namespace lockstep::io {

std::int64_t begin_of_last_lines(int fd, std::int64_t size, std::int64_t lines) {
  constexpr std::int64_t kChunk = 64 << 10;
  if (lines <= 0) return size;
  LastLines last(lines);
  std::vector<char> bytes(kChunk);
  for (std::int64_t end = size; end > 0;) {
    const std::int64_t begin = std::max<std::int64_t>(0, end - kChunk);
    const ssize_t got = pread(fd, bytes.data(), static_cast<std::size_t>(end - begin), begin);
    if (got <= 0) return 0;
    const auto found = last.look_back({bytes.data(), static_cast<std::size_t>(got)});
    if (found) return begin + static_cast<std::int64_t>(*found);
    end = begin;
  }
  return 0;
}

}  // namespace lockstep::io
