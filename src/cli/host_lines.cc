#include "cli/host_lines.h"

#include "base/text.h"

#include <fmt/core.h>

#include <utility>

namespace lockstep::cli {
namespace {

constexpr std::size_t kLongest = 1000;  // of a line that is not finished

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
    // What is cut has three dots behind it, and the last column stays empty: some terminals go on
    // to the next line behind it.
    text += printable(line, columns > 8 ? columns - 4 : 4) + "\n";
  }
  drawn_ = true;
  return text;
}

std::string HostLines::erase() {
  if (!std::exchange(drawn_, false)) return {};
  return fmt::format("\x1b[{}A\x1b[J", hosts_.size());
}

}  // namespace lockstep::cli
