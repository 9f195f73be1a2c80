#include "hosts/folded_lines.h"

#include <chrono>
#include <span>
#include <utility>

namespace lockstep::hosts {
namespace {

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
  rest_is_old_ = false;
  lines_.put(bytes, [&](const OutputLine& line) { add(line, now); });
  return write_out();
}

Status FoldedLines::put(const OutputLine& line, Time now) {
  last_ = now;
  add(line, now);
  return write_out();
}

Status FoldedLines::tick(Time now) {
  folder_.flush_due(now);
  // A line without an end after a whole tick is probably a prompt or a progress bar: show the line.
  if (lines_.has_rest() && std::exchange(rest_is_old_, true))
    lines_.take_rest([&](const OutputLine& line) { add(line, now); });
  return write_out();
}

Status FoldedLines::finish() {
  lines_.take_rest([&](const OutputLine& line) { add(line, last_); });
  folder_.flush();
  return write_out();
}

void FoldedLines::add(OutputLine line, Time now) {
  // The folder has taken the beginning of the line as a frame: the rest is the next frame.
  std::string frame;
  if (!line.begins && std::exchange(drawn_, false)) {
    frame.append("\r").append(line.text);
    line = {.rank = line.rank, .text = frame};
  }
  // The beginning of the line is on the screen, so only the remaining bytes may follow, unchanged.
  if (!line.begins) {
    text_.append(line.text);
    return;
  }
  if (line.text.find('\r') == line.text.npos) {
    if (line.rank && line.ends()) return folder_.put(*line.rank, line.text, now);
  } else if (line.rank && draw(line, now)) {
    return;
  }
  // Print a line without a rank (a report), a prompt or the bar of one rank after all earlier
  // lines.
  folder_.flush();
  text_.append(tagged_text(line));
}

// Takes a frame of a progress bar that several ranks draw.
bool FoldedLines::draw(const OutputLine& line, Time now) {
  const bool taken = folder_.draw(*line.rank, without_inner_tags(line), now);
  drawn_ = taken && !line.ends();
  return taken;
}

Status FoldedLines::write_out() {
  return text_.empty() ? Status() : write_(std::exchange(text_, {}));
}

}  // namespace lockstep::hosts
