#include "hosts/folded_lines.h"

#include "base/text.h"
#include "hosts/log_lines.h"

#include <fmt/core.h>

#include <chrono>
#include <span>
#include <utility>

namespace lockstep::hosts {
namespace {

// A longer unfinished line is shown in pieces, to bound the memory.
constexpr std::size_t kLongestRest = 64 << 10;
// A program may print "[rank5000000000]: " itself. Such a line counts as a line without a rank.
constexpr std::int64_t kMostRanks = 1 << 20;
// Longer than the pause between two looks at a file: ranks that print together may fall into
// different looks.
constexpr logs::LineFolder::Limits kLimits{.window = std::chrono::milliseconds(150)};

}  // namespace

FoldedLines::FoldedLines(Write write)
    : write_(std::move(write)),
      folder_(kLimits, [this](std::span<const int> ranks, std::string_view line, auto) {
        text_.append("[").append(logs::ranks_text(ranks)).append("] ").append(line);
      }) {}

Status FoldedLines::put(std::string_view bytes, Time now) {
  last_ = now;
  while (!bytes.empty()) {
    const std::size_t end = bytes.find('\n');
    const std::string_view piece = bytes.substr(0, end == bytes.npos ? end : end + 1);
    bytes.remove_prefix(piece.size());
    // The line is on the screen in part, so only the remaining bytes may follow, unchanged.
    if (mid_line_) {
      text_.append(piece);
      mid_line_ = end == bytes.npos;
      continue;
    }
    rest_.append(piece);
    rest_is_old_ = false;
    if (piece.ends_with('\n'))
      put_line(std::exchange(rest_, {}), now);
    else if (rest_.size() > kLongestRest)
      show_rest();
  }
  return write_out();
}

Status FoldedLines::tick(Time now) {
  folder_.flush_due(now);
  // A line without an end after a whole tick is probably a prompt or a progress bar: show the line.
  if (!rest_.empty() && std::exchange(rest_is_old_, true)) {
    std::string_view rest = rest_;
    // Keep the beginning of the line: the rank and a '\r' show that the next bytes are a frame of
    // the same bar.
    if (draw_line(rest, now) && take_rank(rest))
      rest_.replace(rest_.size() - rest.size(), rest.size(), "\r");
    else
      show_rest();
  }
  return write_out();
}

Status FoldedLines::finish() {
  if (draw_line(rest_, last_)) rest_.clear();
  folder_.flush();
  text_.append(std::exchange(rest_, {}));
  return write_out();
}

// Prints a line without a rank (a report, a progress bar) after all earlier lines, to keep the
// order.
void FoldedLines::put_line(std::string_view line, Time now) {
  std::string_view rest = line;
  const auto rank = take_rank(rest);
  if (rank && *rank <= kMostRanks && line.find('\r') == line.npos)
    return folder_.put(static_cast<int>(*rank), rest, now);
  if (draw_line(line, now)) return;
  folder_.flush();
  text_.append(line);
}

// Takes a frame of a progress bar that several ranks draw. In the log file of a host, the prefix of
// the rank follows each further '\r' of a line: "[rank1]: \r[rank1]:  10%|#".
bool FoldedLines::draw_line(std::string_view line, Time now) {
  std::string_view rest = line;
  const auto rank = take_rank(rest);
  if (!rank || *rank > kMostRanks || line.find('\r') == line.npos) return false;
  const std::string tag = "\r" + std::string(line.substr(0, line.size() - rest.size()));
  std::string piece(rest);
  replace_all(piece, tag, "\r");
  return folder_.draw(static_cast<int>(*rank), piece, now);
}

// Earlier lines must appear first.
void FoldedLines::show_rest() {
  folder_.flush();
  text_.append(std::exchange(rest_, {}));
  mid_line_ = true;
}

Status FoldedLines::write_out() {
  return text_.empty() ? Status() : write_(std::exchange(text_, {}));
}

}  // namespace lockstep::hosts
