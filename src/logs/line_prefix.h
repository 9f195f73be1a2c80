// The text before a line: fixed, or with the time in it. Pure.
#pragma once

#include <chrono>
#include <string>

namespace lockstep::logs {

class LinePrefix {
 public:
  // Marks the place of the time in the text. A user's template cannot contain this byte.
  static constexpr char kTime = '\0';

  LinePrefix() = default;
  explicit LinePrefix(std::string text)
      : text_(std::move(text)), timed_(text_.find(kTime) != std::string::npos) {}

  bool timed() const { return timed_; }
  // Returns the prefix with `now` at the marked place.
  std::string at(std::chrono::system_clock::time_point now) const;

 private:
  std::string text_;
  bool timed_ = false;
};

}  // namespace lockstep::logs
