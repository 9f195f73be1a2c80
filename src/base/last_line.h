// The end of a text: its last line, and where its last lines begin.
#pragma once

#include "base/text.h"

#include <cstdint>
#include <optional>
#include <string_view>

namespace lockstep {

// Returns the last line that is not only white space, stripped. "" if there is none.
inline std::string_view last_line(std::string_view text) {
  text = strip(text);
  const std::size_t before = text.rfind('\n');
  return before == std::string_view::npos ? text : strip(text.substr(before + 1));
}

// Finds where the last lines of a text begin, in chunks from its end backwards: a log may be larger
// than memory. An unfinished line at the end counts as a line.
class LastLines {
 public:
  explicit LastLines(std::int64_t lines) : left_(lines) {}

  // chunk: what stands before all chunks so far. Returns the place in this chunk where the last
  // lines begin; nullopt: earlier than this chunk.
  std::optional<std::size_t> look_back(std::string_view chunk) {
    if (left_ <= 0) return chunk.size();
    for (std::size_t at = chunk.size(); at-- > 0;) {
      // An end of line at the very end of the text begins no further line.
      const bool ends_line = chunk[at] == '\n' && !at_end_;
      at_end_ = false;
      if (ends_line && --left_ == 0) return at + 1;
    }
    return std::nullopt;
  }

 private:
  std::int64_t left_;
  bool at_end_ = true;
};

// The last lines of a text.
inline std::string_view last_lines(std::string_view text, std::int64_t lines) {
  return text.substr(LastLines(lines).look_back(text).value_or(0));
}

}  // namespace lockstep
