// Picks the lines that contain one of several strings, for filtered_*.log. Pure.
//
// Lines end as in LineTagger. They are copied with a prefix and '\n'. Memory is bounded: a line is
// judged by its first kJudged bytes, so a later match in a longer line is missed. A picked line is
// copied whole.
#pragma once

#include "logs/byte_queue.h"

#include <string>
#include <string_view>
#include <vector>

namespace lockstep::logs {

class LineFilter {
 public:
  static constexpr std::size_t kJudged = 64 << 10;

  LineFilter(std::string prefix, std::vector<std::string> wanted)
      : prefix_(std::move(prefix)), wanted_(std::move(wanted)) {}

  // Sets the prefix of lines picked from now on.
  void set_prefix(std::string prefix) { prefix_ = std::move(prefix); }
  void feed(std::string_view chunk, ByteQueue& to);
  // Ends the stream. The copy of a last line without '\n' has no '\n' either.
  void finish(ByteQueue& to);

 private:
  enum class Verdict { open, picked, passed_over };

  void add(std::string_view part, ByteQueue& to);
  void end_line(ByteQueue& to);
  void judge(std::string_view line, ByteQueue& to);

  std::string prefix_;
  std::vector<std::string> wanted_;
  std::string held_;  // the current line, while its verdict is open
  Verdict verdict_ = Verdict::open;
  bool after_cr_ = false;
};

}  // namespace lockstep::logs
