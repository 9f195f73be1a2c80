// What stands before a line: fixed text, or text with the time in it. Pure.
#pragma once

#include <chrono>
#include <string>

namespace lockstep::logs {

class LinePrefix {
 public:
  // Stands in the text where the time goes; a user's text can't hold it.
  static constexpr char kTime = '\0';

  LinePrefix() = default;
  explicit LinePrefix(std::string text)
      : text_(std::move(text)), timed_(text_.find(kTime) != std::string::npos) {}

  bool timed() const { return timed_; }
  std::string at(std::chrono::system_clock::time_point now) const;

 private:
  std::string text_;
  bool timed_ = false;
};

}  // namespace lockstep::logs
