// The last bytes of a stream in bounded memory, and their readable form. Pure.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace lockstep::logs {

class TailRing {
 public:
  static constexpr std::size_t kSize = 64 << 10;

  void append(std::string_view bytes);
  std::string bytes() const;  // at most kSize, oldest first
  bool has(std::string_view words) const;
  bool cut() const { return cut_; }

 private:
  std::string ring_;  // grows up to kSize, then wraps
  std::size_t next_ = 0;
  bool cut_ = false;  // earlier bytes were dropped
};

// The newest few bytes of a stream. Every read of a worker's output comes by here, so a read costs
// one copy of at most kMost bytes. Lines are found when somebody asks.
class NewestBytes {
 public:
  static constexpr std::size_t kMost = 4 << 10;

  void append(std::string_view bytes);
  std::string_view bytes() const { return bytes_; }

 private:
  std::string bytes_;  // at most twice kMost
};

// Returns the newest line that is complete and not blank, as tail_text() does. The newest drawing
// of a progress bar is complete. Lines of PyTorch about dumps of flight recorders do not count. "":
// there is none.
std::string newest_line(std::string_view bytes);

// Returns the last `lines` lines of `bytes`, without a final '\n'. For a line redrawn with '\r',
// only the last drawing. Removes ANSI control sequences. Other control characters (except tab) and
// broken UTF-8 become \xNN. cut: `bytes` may begin within a line. That piece is left out if more
// follows.
std::string tail_text(std::string_view bytes, std::size_t lines, bool cut);

}  // namespace lockstep::logs
