// Puts the time into a prefix.
#include "logs/line_prefix.h"

#include <fmt/core.h>

#include <time.h>

namespace lockstep::logs {
namespace {

// Formats local time as "2026-11-22 01:40:24.123".
std::string time_text(std::chrono::system_clock::time_point now) {
  const auto ms = std::chrono::floor<std::chrono::milliseconds>(now).time_since_epoch();
  const auto whole = std::chrono::floor<std::chrono::seconds>(ms);
  const time_t seconds = whole.count();
  tm parts{};
  if (localtime_r(&seconds, &parts) == nullptr) return "?";
  char text[32];
  const std::size_t size = strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S", &parts);
  return fmt::format("{}.{:03}", std::string_view(text, size), (ms - whole).count());
}

}  // namespace

std::string LinePrefix::at(std::chrono::system_clock::time_point now) const {
  if (!timed_) return text_;
  const std::string time = time_text(now);
  std::string out;
  for (const char c : text_)
    c == kTime ? out.append(time) : out.append(1, c);
  return out;
}

}  // namespace lockstep::logs
