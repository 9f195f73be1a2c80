#include "cli/host_lines.h"

#include "base/text.h"

#include <fmt/core.h>

#include <utility>

namespace lockstep::cli {
namespace {

// Bytes kept of an unfinished line: a host's endless line must not fill this machine's memory.
constexpr std::size_t kLongest = 1000;

}  // namespace

HostLines::HostLines(std::vector<std::string> names) {
  for (std::string& name : names)
    hosts_.push_back({.name = std::move(name)});
}

void HostLines::put(std::size_t host, std::string_view bytes) {
  Host& own = hosts_.at(host);
  for (const char c : bytes) {
    if (c == '\n') {
      end_line(own);
    } else if (own.unfinished.size() < kLongest) {
      own.unfinished += c;
    }
  }
}

void HostLines::end_line(Host& host) {
  const std::string line = std::exchange(host.unfinished, {});
  const bool detail = line.starts_with("  ");
  // Escape control characters, because a host's output must not command the user's terminal.
  const std::string text = printable(strip(line));
  if (text.empty()) return;
  if (!detail) host.step = text;
  host.detail = detail ? text : "";
}

std::string HostLines::draw(std::size_t columns) {
  std::string text = erase();
  for (const Host& host : hosts_) {
    std::string line = fmt::format("{}: {}", host.name, host.step.empty() ? "waiting" : host.step);
    if (!host.detail.empty()) line += " | " + host.detail;
    // A cut text gets three dots. The last column stays empty, because some terminals wrap there,
    // and erase() would then count too few rows.
    text += printable(line, columns > 8 ? columns - 4 : 4) + "\n";
  }
  drawn_ = true;
  return text;
}

std::string HostLines::erase() {
  if (!std::exchange(drawn_, false)) return {};
  // Up by one row per host, then clear to the end of the screen.
  return fmt::format("\x1b[{}A\x1b[J", hosts_.size());
}

}  // namespace lockstep::cli
