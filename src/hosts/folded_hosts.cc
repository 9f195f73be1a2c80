#include "hosts/folded_hosts.h"

#include <chrono>

namespace lockstep::hosts {
namespace {

constexpr std::chrono::milliseconds kLook{50};
// Ticks after the last output: together longer than FoldedLines holds any line.
constexpr int kLooks = 8;

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
  hosts_[std::string(prefix)].put(bytes, [&](const OutputLine& line) { add(prefix, line); });
  look_again();
}

// A line with a rank has no host name, since equal lines of different hosts must fold. Other lines
// need the host name to be understood.
void FoldedHosts::add(std::string_view prefix, const OutputLine& line) {
  std::string text(line.rank ? "" : prefix);
  text.append(line.text);
  // A piece of a long line gets a line end of its own, so that the next line of another host
  // starts at the left.
  if (!line.ends()) text += '\n';
  (void)lines_.put(OutputLine{.rank = line.rank, .text = text}, io::Clock::now());
}

void FoldedHosts::end(std::string_view prefix) {
  const auto at = hosts_.find(prefix);
  if (at == hosts_.end()) return;
  at->second.take_rest([&](const OutputLine& line) { add(prefix, line); });
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
