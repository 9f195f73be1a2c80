// Words of the host that owns a rental, for the terminal of the user here. Whoever rules that host
// must not rule the terminal, so control characters are escaped and the length is bounded. Pure.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace lockstep::jobs::rented {

class OwnerWords {
 public:
  // most: the bytes of the host that are shown. A line at that point says that more came.
  explicit OwnerWords(std::size_t most = kMost) : left_(most) {}

  // Returns the printable form of the lines that end within the bytes.
  std::string take(std::string_view bytes);
  // Returns the unfinished last line.
  std::string end();

  static constexpr std::size_t kMost = 1UL << 20;
  static constexpr std::size_t kMostLine = 64UL << 10;  // the rest of a longer line is dropped

 private:
  void end_line(std::string& shown);

  std::size_t left_;
  std::string line_;  // unfinished; a byte longer than kMostLine at most
};

// Returns the lines of the text in full, since a cut line may be JSON. The caller bounds the text.
std::string printable_lines(std::string_view text);

}  // namespace lockstep::jobs::rented
