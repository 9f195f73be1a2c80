// The output of a job for people. A line that several ranks print at about the same time appears
// once: "[0-15] loss 2.31". Pure, but for the writing.
#pragma once

#include "base/error.h"
#include "hosts/log_lines.h"
#include "logs/line_folder.h"

#include <functional>
#include <string>
#include <string_view>

namespace lockstep::hosts {

class FoldedLines {
 public:
  using Time = logs::LineFolder::Time;
  using Write = std::function<Status(std::string_view text)>;

  // Passes finished text to `write` inside put(), tick() and finish(), which return the error of
  // `write`.
  explicit FoldedLines(Write write);
  FoldedLines(const FoldedLines&) = delete;
  FoldedLines& operator=(const FoldedLines&) = delete;

  // Adds output of one host.
  Status put(std::string_view bytes, Time now);
  // Adds a whole line of one of several hosts.
  Status put(const OutputLine& line, Time now);
  // Call from time to time. Prints lines that have waited long enough, and an unfinished line after
  // a pause.
  Status tick(Time now);
  // Returns whether a line waits for a later tick().
  bool waits() const { return folder_.due().has_value(); }
  // Prints all that waits.
  Status finish();

 private:
  void add(OutputLine line, Time now);
  bool draw(const OutputLine& line, Time now);
  Status write_out();

  Write write_;
  logs::LineFolder folder_;
  OutputLines lines_;
  bool rest_is_old_ = false;  // a tick() has passed since the last bytes
  bool drawn_ = false;        // the current line is a bar, whose unfinished frame was taken
  Time last_;                 // the time of the last bytes
  std::string text_;          // ready for `write`
};

}  // namespace lockstep::hosts
