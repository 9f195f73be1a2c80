// Adds a prefix to the start of every line of a byte stream. Pure.
//
// A line ends at '\n', at '\r' (progress bars) or at "\r\n". All other bytes pass unchanged,
// including NUL and broken UTF-8. The result does not depend on how the stream is cut into chunks.
// Up to kHold bytes after the last '\n' are held back, so that lines reach the console whole.
// flush() shows the held bytes early. If another source then interrupts the line, the line is
// appended again from its start when it goes on.
#pragma once

#include "logs/byte_queue.h"

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>

namespace lockstep::logs {

class LineTagger {
 public:
  // A longer line is passed on in pieces, which other sources may interrupt.
  static constexpr std::size_t kHold = 1 << 20;

  explicit LineTagger(std::string prefix) : prefix_(std::move(prefix)) {}

  // Sets the prefix of lines that begin from now on.
  void set_prefix(std::string prefix) { prefix_ = std::move(prefix); }

  // Returns whether feed(chunk) would append anything.
  bool ready(std::string_view chunk) const;
  // Appends the tagged bytes of whole lines to `to`, and holds back the rest. The rest of a line
  // that was shown early follows at once.
  void feed(std::string_view chunk, ByteQueue& to);
  // Appends the held bytes to `to`, although their line has not ended.
  void flush(ByteQueue& to);

  // Returns the first byte of the next output, after its prefix. chunk: the bytes about to be fed.
  char first(std::string_view chunk) const { return held_.empty() ? chunk.front() : held_.front(); }
  bool holds_cr() const { return held_cr_; }
  // The held bytes belong to a progress bar: of one row ('\r'), or of several rows, which the
  // worker draws after moving the cursor up.
  bool redraws() const { return held_cr_ || moves_up_; }
  bool holds() const { return !held_.empty(); }
  // The output so far does not end in '\n'.
  bool mid_line() const { return state_ == State::in_line || state_ == State::after_cr; }
  bool at_line_start() const { return state_ == State::line_start; }
  bool starts_with_prefix() const { return at_line_start() || state_ == State::cut; }
  bool prefixed() const { return !prefix_.empty(); }

  // The held bytes, which the caller may show another way and then drop.
  const std::string& held() const { return held_; }
  void drop_held();

  // Another source ended the unterminated line with '\n'. The next output begins with a prefix. If
  // it is only the line's own end, it is left out.
  void cut() { state_ = State::cut; }

 private:
  enum class State { line_start, in_line, after_cr, cut };

  void tag(std::string_view bytes, ByteQueue& to);
  void remember(std::string_view rest, bool from_start);
  void hold(std::string_view bytes);
  void clear_held();

  std::string prefix_;
  std::string held_;
  bool held_cr_ = false;
  bool moves_up_ = false;  // the chunk that began the held bytes moved the cursor up
  // The shown part of the unfinished line. Empty if that part is longer than kHold.
  std::string shown_;
  State state_ = State::line_start;
};

}  // namespace lockstep::logs
