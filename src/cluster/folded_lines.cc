#include "cluster/folded_lines.h"

#include "cluster/log_lines.h"

#include <fmt/core.h>

#include <chrono>
#include <span>
#include <utility>

namespace lockstep::cluster {
namespace {

constexpr std::size_t kLongestRest = 64 << 10;
constexpr std::int64_t kMostRanks = 1 << 20;
// Longer than the pause between two looks at a file, in which ranks that speak together may fall.
constexpr logs::LineFolder::Limits kLimits{.window = std::chrono::milliseconds(150)};

}  // namespace

FoldedLines::FoldedLines(Write write)
    : write_(std::move(write)),
      folder_(kLimits, [this](std::span<const int> ranks, std::string_view line, auto) {
        text_.append("[").append(logs::ranks_text(ranks)).append("] ").append(line);
      }) {}

Status FoldedLines::put(std::string_view bytes, Time now) {
  while (!bytes.empty()) {
    const std::size_t end = bytes.find('\n');
    const std::string_view piece = bytes.substr(0, end == bytes.npos ? end : end + 1);
    bytes.remove_prefix(piece.size());
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
  if (!rest_.empty() && std::exchange(rest_is_old_, true)) show_rest();
  return write_out();
}

Status FoldedLines::finish() {
  folder_.flush();
  text_.append(std::exchange(rest_, {}));
  return write_out();
}

// What no rank says, as a report or a progress bar, comes behind all that was said before it.
void FoldedLines::put_line(std::string_view line, Time now) {
  std::string_view rest = line;
  const auto rank = take_rank(rest);
  if (rank && *rank <= kMostRanks && line.find('\r') == line.npos)
    return folder_.put(static_cast<int>(*rank), rest, now);
  folder_.flush();
  text_.append(line);
}

void FoldedLines::show_rest() {
  folder_.flush();
  text_.append(std::exchange(rest_, {}));
  mid_line_ = true;
}

Status FoldedLines::write_out() {
  return text_.empty() ? Status() : write_(std::exchange(text_, {}));
}

}  // namespace lockstep::cluster
