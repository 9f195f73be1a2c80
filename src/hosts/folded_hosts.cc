#include "hosts/folded_hosts.h"

#include "hosts/log_lines.h"

#include <chrono>

namespace lockstep::hosts {
namespace {

constexpr std::chrono::milliseconds kLook{50};
// Ticks after the last output: together longer than FoldedLines holds any line.
constexpr int kLooks = 8;
// Longer lines are shown in pieces, so that a program without line ends cannot fill the memory.
constexpr std::size_t kLongestLine = 64UL << 10;

}  // namespace

FoldedHosts::FoldedHosts(io::Loop& loop, HostOutput& output)
    : output_(output),
      lines_([this](std::string_view text) { return write(text); }),
      next_look_(loop) {}

void FoldedHosts::put(std::string_view prefix, std::string_view bytes,
                      HostOutput::Printed printed) {
  waiting_.emplace_back(bytes.size(), std::move(printed));
  looks_left_ = kLooks;
  // With a single host, FoldedLines gets the raw bytes and can show a prompt or a progress bar that
  // has no line end. With several hosts, unfinished lines of different hosts would run into each
  // other.
  if (prefix.empty()) {
    (void)lines_.put(bytes, io::Clock::now());
    return look_again();
  }
  std::string& line = unfinished_[std::string(prefix)];
  while (!bytes.empty()) {
    const std::size_t end = bytes.find('\n');
    line += bytes.substr(0, end == bytes.npos ? end : end + 1);
    bytes.remove_prefix(end == bytes.npos ? bytes.size() : end + 1);
    if (end == bytes.npos && line.size() < kLongestLine) break;
    // A piece of a long line gets a line end of its own, so that the next line of another host
    // starts at the left.
    if (!line.ends_with('\n')) line += '\n';
    put_line(prefix, std::exchange(line, {}));
  }
  look_again();
}

// A line with a rank has no host name, since equal lines of different hosts must fold. Other lines
// need the host name to be understood.
void FoldedHosts::put_line(std::string_view prefix, std::string_view line) {
  std::string_view rest = line;
  const bool of_rank = take_rank(rest).has_value();
  (void)lines_.put(of_rank ? std::string(line) : std::string(prefix).append(line),
                   io::Clock::now());
}

void FoldedHosts::end(std::string_view prefix) {
  const auto at = unfinished_.find(prefix);
  if (at == unfinished_.end() || at->second.empty()) return;
  put_line(prefix, std::exchange(at->second, {}).append("\n"));
}

// No equal line can follow any more, so nothing is held back.
void FoldedHosts::finish() {
  next_look_.cancel();
  (void)lines_.finish();
  tell_printed(std::exchange(waiting_, {}));
}

void FoldedHosts::tell_printed(const Waiting& waiting) {
  for (const auto& [bytes, printed] : waiting)
    printed(bytes);
}

// Credit follows the reader of this process: the hosts may send more once these bytes are printed.
Status FoldedHosts::write(std::string_view text) {
  output_.put("", text,
              [waiting = std::exchange(waiting_, {})](std::size_t) { tell_printed(waiting); });
  return {};
}

// Lines wait for equal lines, and hosts wait for the reader of this process. A host must not wait
// for the lines of other hosts: give credit whenever nothing is left to print, even if lines are
// held back.
void FoldedHosts::look_again() {
  if (next_look_.active()) return;
  next_look_.start(kLook, [this] {
    (void)lines_.tick(io::Clock::now());
    if (output_.idle()) tell_printed(std::exchange(waiting_, {}));
    if (--looks_left_ > 0 || !waiting_.empty() || lines_.waits()) look_again();
  });
}

}  // namespace lockstep::hosts
