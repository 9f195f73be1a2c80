// Turns a stream of bytes into the same stream with a prefix at the start of every line. Pure.
//
// A line ends at '\n', at '\r' (progress bars) or at "\r\n". All other bytes, NUL and broken UTF-8
// among them, pass unchanged; however the stream is cut into chunks, the result is the same. What
// follows the last '\n' is held back, at most kHold bytes of it, so that lines reach the console
// whole; flush() releases it.
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

  // The prefix of lines that begin from now on.
  void set_prefix(std::string prefix) { prefix_ = std::move(prefix); }

  // Whether feed(chunk) would append anything.
  bool ready(std::string_view chunk) const;
  void feed(std::string_view chunk, ByteQueue& to);
  void flush(ByteQueue& to);

  // The first byte of the next output, after its prefix. chunk: what is about to be fed.
  char first(std::string_view chunk) const { return held_.empty() ? chunk.front() : held_.front(); }
  bool holds_cr() const { return held_.find('\r') != held_.npos; }
  bool holds() const { return !held_.empty(); }
  // What was appended so far does not end in '\n'.
  bool mid_line() const { return state_ == State::in_line || state_ == State::after_cr; }
  bool at_line_start() const { return state_ == State::line_start; }
  bool starts_with_prefix() const { return at_line_start() || state_ == State::cut; }
  bool prefixed() const { return !prefix_.empty(); }

  // What is held back, which somebody else shows.
  std::string take_held() { return std::exchange(held_, {}); }
  void hold(std::string bytes) { held_ = std::move(bytes); }

  // Another origin ended the unterminated line with '\n'. What follows begins with a prefix; if it
  // is only the line's own end, it is left out.
  void cut() { state_ = State::cut; }

 private:
  enum class State { line_start, in_line, after_cr, cut };

  void tag(std::string_view bytes, ByteQueue& to);

  std::string prefix_;
  std::string held_;
  State state_ = State::line_start;
};

}  // namespace lockstep::logs
