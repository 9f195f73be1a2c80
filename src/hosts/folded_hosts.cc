#include "hosts/folded_hosts.h"

#include "hosts/log_lines.h"

#include <chrono>

namespace lockstep::hosts {
namespace {

constexpr std::chrono::milliseconds kLook{50};
constexpr int kLooks = 8;  // after the last output: longer than FoldedLines holds any line
constexpr std::size_t kLongestLine = 64UL << 10;  // a longer one is shown in pieces

}  // namespace

FoldedHosts::FoldedHosts(io::Loop& loop, HostOutput& output)
    : output_(output),
      lines_([this](std::string_view text) { return write(text); }),
      next_look_(loop) {}

void FoldedHosts::put(std::string_view prefix, std::string_view bytes,
                      HostOutput::Printed printed) {
  waiting_.emplace_back(bytes.size(), std::move(printed));
  looks_left_ = kLooks;
  // Output of a single host is shown in full, also an unfinished line.
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
    if (!line.ends_with('\n')) line += '\n';
    put_line(prefix, std::exchange(line, {}));
  }
  look_again();
}

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

void FoldedHosts::finish() {
  next_look_.cancel();
  (void)lines_.finish();
  tell_printed(std::exchange(waiting_, {}));
}

void FoldedHosts::tell_printed(const Waiting& waiting) {
  for (const auto& [bytes, printed] : waiting)
    printed(bytes);
}

Status FoldedHosts::write(std::string_view text) {
  output_.put("", text,
              [waiting = std::exchange(waiting_, {})](std::size_t) { tell_printed(waiting); });
  return {};
}

// Lines wait for their like, and hosts for the reader of this process, but not for each other.
void FoldedHosts::look_again() {
  if (next_look_.active()) return;
  next_look_.start(kLook, [this] {
    (void)lines_.tick(io::Clock::now());
    if (output_.idle()) tell_printed(std::exchange(waiting_, {}));
    if (--looks_left_ > 0 || !waiting_.empty() || lines_.waits()) look_again();
  });
}

}  // namespace lockstep::hosts
