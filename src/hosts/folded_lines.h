// The output of a job for people: lines that several ranks say at about the same time become one,
// "[0-15] loss 2.31". Pure, but for the writing.
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

  explicit FoldedLines(Write write);
  FoldedLines(const FoldedLines&) = delete;
  FoldedLines& operator=(const FoldedLines&) = delete;

  // Adds output. Lines of ranks begin with rank_prefix().
  Status put(std::string_view bytes, Time now);
  // Call from time to time. Prints lines that have waited long enough, and an unfinished line after
  // a pause.
  Status tick(Time now);
  bool waits() const { return folder_.due().has_value(); }  // for a later tick
  Status finish();

 private:
  void put_line(std::string_view line, Time now);
  void show_rest();
  bool draw_line(std::string_view line, Time now);
  Status write_out();

  Write write_;
  logs::LineFolder folder_;
  std::string rest_;  // bytes of an unfinished line
  bool rest_is_old_ = false;
  bool mid_line_ = false;  // its beginning was shown
  Time last_;              // when bytes came last
  std::string text_;
};

}  // namespace lockstep::hosts
