// Decides how long the unfinished line of a worker waits for its end before the console shows it.
// Pure: the caller passes the time.
#pragma once

#include <algorithm>
#include <chrono>

namespace lockstep::logs {

class LineHold {
 public:
  using Time = std::chrono::steady_clock::time_point;

  // For a line redrawn with '\r' (a progress bar), and for the line of a console's only source.
  static constexpr std::chrono::milliseconds kShort{20};
  // For every other line. print() with several arguments writes several times, and a busy machine
  // may stop the process in between for longer than kShort. A prompt, or a rank that hangs in the
  // middle of a line, must still become visible.
  static constexpr std::chrono::milliseconds kLong{2000};
  static constexpr std::chrono::milliseconds kLongest{60000};

  // The first bytes of an unfinished line are held, or the line waits anew.
  void begin(Time now) { since_ = now; }
  // Another source wrote after the line was shown. The line will be shown again from its start, so
  // it waits longer each time.
  void on_cut() { long_ = std::min(2 * long_, kLongest); }
  void on_line_end() { long_ = kLong; }

  // soon: the line is redrawn, or no other source can interrupt it.
  Time due(bool soon) const { return since_ + (soon ? kShort : long_); }

 private:
  Time since_;
  std::chrono::milliseconds long_ = kLong;
};

}  // namespace lockstep::logs
