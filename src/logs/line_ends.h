// Finds the line ends ('\n' and '\r') of a chunk, front to back, with memchr. Looks at each byte
// twice at most, for any mixture of the two.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <string_view>

namespace lockstep::logs {

class LineEnds {
 public:
  explicit LineEnds(std::string_view chunk)
      : end_(chunk.data() + chunk.size()),
        newline_(find(chunk.data(), '\n')),
        cr_(find(chunk.data(), '\r')) {}

  // Returns the first line end at or after `at`, or the end of the chunk. `at` must not go
  // backwards.
  const char* next(const char* at) {
    if (newline_ < at) newline_ = find(at, '\n');
    if (cr_ < at) cr_ = find(at, '\r');
    return std::min(newline_, cr_);
  }

 private:
  const char* find(const char* from, char wanted) const {
    const auto size = static_cast<std::size_t>(end_ - from);
    const void* found = size == 0 ? nullptr : std::memchr(from, wanted, size);
    return found != nullptr ? static_cast<const char*>(found) : end_;
  }

  const char* end_;
  const char* newline_;
  const char* cr_;
};

}  // namespace lockstep::logs
