// Cuts text that comes in pieces into lines.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace lockstep {

class LineCutter {
 public:
  // most: bytes of a line without its end; see too_long().
  explicit LineCutter(std::size_t most) : most_(most) {}

  void put(std::string_view bytes) {
    text_.erase(0, taken_);
    taken_ = 0;
    text_ += bytes;
  }

  // The next whole line, without '\n'; valid until put(). nullopt: none has come.
  std::optional<std::string_view> next() {
    const std::size_t end = text_.find('\n', taken_);
    if (end == std::string::npos) return std::nullopt;
    const std::string_view line = std::string_view(text_).substr(taken_, end - taken_);
    taken_ = end + 1;
    return line;
  }

  // What has come behind the last whole line.
  std::string_view rest() const { return std::string_view(text_).substr(taken_); }

  // The rest is longer than a line may be: the peer is broken, or hostile.
  bool too_long() const { return rest().size() > most_; }

 private:
  const std::size_t most_;
  std::string text_;
  std::size_t taken_ = 0;
};

}  // namespace lockstep
