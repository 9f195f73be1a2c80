// The output of a job for people. A line that several ranks print at about the same time appears
// once: "[0-15] loss 2.31". Pure, but for the writing.
#pragma once

#include "base/error.h"
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

  // Adds output. Lines of ranks begin with rank_prefix().
  Status put(std::string_view bytes, Time now);
  // Call from time to time. Prints lines that have waited long enough, and an unfinished line after
  // a pause.
  Status tick(Time now);
  // Returns whether a line waits for a later tick().
  bool waits() const { return folder_.due().has_value(); }
  // Prints all that waits.
  Status finish();

 private:
  void put_line(std::string_view line, Time now);
  void show_rest();
  bool draw_line(std::string_view line, Time now);
  Status write_out();

  Write write_;
  logs::LineFolder folder_;
  std::string rest_;          // bytes of an unfinished line
  bool rest_is_old_ = false;  // a tick() has passed since the last bytes of rest_
  bool mid_line_ = false;     // the beginning of the current line was shown already
  Time last_;                 // the time of the last bytes
  std::string text_;          // ready for `write`
};

}  // namespace lockstep::hosts
