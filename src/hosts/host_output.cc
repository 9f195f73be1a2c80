#include "hosts/host_output.h"

#include "base/mid_line.h"

#include <unistd.h>

#include <algorithm>
#include <utility>

namespace lockstep::hosts {
namespace {
// A line without an end is printed in pieces of this size, so that a host cannot fill the memory of
// this process.
constexpr std::size_t kMostLine = 64UL << 10;
}  // namespace

HostOutput::HostOutput(io::Loop& loop, io::OwnStream stream)
    : stream_(std::move(stream)),
      on_terminal_(isatty(stream_.fd()) == 1 && isatty(STDERR_FILENO) == 1),
      sink_(loop, stream_.fd(), stream_.pollable(),
            {[this](std::size_t bytes) { on_consumed(bytes); }, [] {}}) {}

void HostOutput::put(std::string_view prefix, std::string_view bytes, Printed printed) {
  // Bytes of a single host pass unchanged: prompts and progress bars have no line ends.
  if (prefix.empty()) return put_text(bytes, bytes.size(), std::move(printed));
  put_text(whole_lines(prefix, bytes), bytes.size(), std::move(printed));
}

void HostOutput::put_text(std::string_view text, std::size_t given, Printed printed) {
  // Nothing of these bytes is printed now, and no later report would count them: give the credit at
  // once.
  if (text.empty()) return printed(given);
  pieces_.push_back({text.size(), given, std::move(printed)});
  write(text);
}

void HostOutput::write(std::string_view text) {
  // A message on stderr must start a new line if the output stopped in the middle of a line.
  if (on_terminal_ && !text.empty()) set_mid_line(!text.ends_with('\n'));
  sink_.put(text);
}

std::string HostOutput::whole_lines(std::string_view prefix, std::string_view bytes) {
  std::string& line = unfinished_[std::string(prefix)];
  std::string text;
  while (!bytes.empty()) {
    const std::size_t end = bytes.find('\n');
    const bool ends = end != std::string_view::npos;
    line += bytes.substr(0, ends ? end + 1 : end);
    bytes.remove_prefix(ends ? end + 1 : bytes.size());
    if (!ends && line.size() < kMostLine) break;
    text.append(prefix).append(line);
    // Another host may print next, so every piece needs a line end.
    if (!ends) text += '\n';
    line.clear();
  }
  return text;
}

void HostOutput::end(std::string_view prefix) {
  const auto at = unfinished_.find(prefix);
  if (at == unfinished_.end() || at->second.empty()) return;
  // put() has given credit for these bytes already.
  put_text(std::string(prefix) + std::exchange(at->second, {}) + "\n", 0, [](std::size_t) {});
}

void HostOutput::when_idle(std::function<void()> fn) {
  when_idle_ = std::move(fn);
  if (pieces_.empty()) std::exchange(when_idle_, nullptr)();
}

void HostOutput::on_consumed(std::size_t bytes) {
  // The sink reports bytes, not pieces: one report may end several pieces, or none.
  while (bytes > 0 && !pieces_.empty()) {
    Piece& piece = pieces_.front();
    const std::size_t part = std::min(bytes, piece.printed_bytes);
    piece.printed_bytes -= part;
    bytes -= part;
    if (piece.printed_bytes > 0) break;
    // The callback may add pieces, so take this piece out of the queue first.
    const Piece done = std::move(piece);
    pieces_.pop_front();
    done.printed(done.given_bytes);
  }
  if (pieces_.empty() && when_idle_) std::exchange(when_idle_, nullptr)();
}

}  // namespace lockstep::hosts
