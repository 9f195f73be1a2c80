// Adds a prefix to the start of every line of a byte stream. Pure.
//
// A line ends at '\n', at '\r' (progress bars) or at "\r\n". All other bytes pass unchanged,
// including NUL and broken UTF-8. The result does not depend on how the stream is cut into chunks.
// Up to kHold bytes after the last '\n' are held back, so that lines reach the console whole.
// flush() releases them.
#pragma once

#include "logs/byte_queue.h"

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>

namespace lockstep::logs {

class LineTagger {
 public:
  static constexpr std::size_t kHold = 64 << 10;

  explicit LineTagger(std::string prefix) : prefix_(std::move(prefix)) {}

  // Sets the prefix of lines that begin from now on.
  void set_prefix(std::string prefix) { prefix_ = std::move(prefix); }

  // Returns whether feed(chunk) would append anything.
  bool ready(std::string_view chunk) const;
  // Appends the tagged bytes of whole lines to `to`, and holds back the rest.
  void feed(std::string_view chunk, ByteQueue& to);
  // Appends the held bytes to `to`, although their line has not ended.
  void flush(ByteQueue& to);

  // Returns the first byte of the next output, after its prefix. chunk: the bytes about to be fed.
  char first(std::string_view chunk) const { return held_.empty() ? chunk.front() : held_.front(); }
  bool holds_cr() const { return held_.find('\r') != held_.npos; }
  bool holds() const { return !held_.empty(); }
  // The output so far does not end in '\n'.
  bool mid_line() const { return state_ == State::in_line || state_ == State::after_cr; }
  bool at_line_start() const { return state_ == State::line_start; }
  bool starts_with_prefix() const { return at_line_start() || state_ == State::cut; }
  bool prefixed() const { return !prefix_.empty(); }

  // Hands the held bytes to the caller, to be shown another way.
  std::string take_held() { return std::exchange(held_, {}); }
  void hold(std::string bytes) { held_ = std::move(bytes); }

  // Another source ended the unterminated line with '\n'. The next output begins with a prefix. If
  // it is only the line's own end, it is left out.
  void cut() { state_ = State::cut; }

 private:
  enum class State { line_start, in_line, after_cr, cut };

  void tag(std::string_view bytes, ByteQueue& to);

  std::string prefix_;
  std::string held_;
  State state_ = State::line_start;
};

}  // namespace lockstep::logs
