// The last bytes of a stream, in bounded memory, and how they are shown to a person. Pure.
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
  bool cut() const { return cut_; }

 private:
  std::string ring_;  // grows up to kSize, then wraps
  std::size_t next_ = 0;
  bool cut_ = false;  // earlier bytes are gone
};

// The last `lines` lines of `bytes`: of a line redrawn with '\r' its last drawing, without ANSI
// control sequences, with other control characters (not tab) and broken UTF-8 as \xNN, and without
// a last '\n'. cut: `bytes` may begin in mid-line; that piece is left out if more follows.
std::string tail_text(std::string_view bytes, std::size_t lines, bool cut);

}  // namespace lockstep::logs
