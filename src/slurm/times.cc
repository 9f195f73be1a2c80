#include "slurm/times.h"

#include "base/text.h"

#include <time.h>

#include <algorithm>
#include <string>
#include <vector>

namespace lockstep::slurm {
namespace {

constexpr std::int64_t kLongest = 1'000'000'000;  // limit of each number, so that no sum overflows

std::optional<std::int64_t> digits(std::string_view text) {
  const bool plain = !text.empty() && std::all_of(text.begin(), text.end(),
                                                  [](char c) { return c >= '0' && c <= '9'; });
  const auto number = plain ? parse_int(text) : std::nullopt;
  return number && *number <= kLongest ? number : std::nullopt;
}

}  // namespace

std::optional<std::int64_t> parse_duration(std::string_view text) {
  std::int64_t days = 0;
  const std::size_t dash = text.find('-');
  if (dash != std::string_view::npos) {
    const auto given = digits(text.substr(0, dash));
    if (!given) return std::nullopt;
    days = *given;
    text.remove_prefix(dash + 1);
  }
  std::vector<std::int64_t> parts;
  for (const std::string& part : split(text, ':')) {
    const auto number = digits(part);
    if (!number || parts.size() == 3) return std::nullopt;
    parts.push_back(*number);
  }
  // After days the first number is hours. Without days, one or two numbers begin at minutes.
  if (dash == std::string_view::npos && parts.size() < 3) parts.insert(parts.begin(), 0);
  parts.resize(3);
  return ((days * 24 + parts[0]) * 60 + parts[1]) * 60 + parts[2];
}

std::optional<std::int64_t> parse_moment(std::string_view text) {
  text = strip(text);
  const auto all_digits =
      std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
  if (all_digits) {
    const auto seconds = text.size() > 12 ? std::nullopt : parse_int(text);
    return seconds && *seconds > 0 ? seconds : std::nullopt;
  }
  if (text.size() != 19) return std::nullopt;
  const std::string copy(text);
  struct tm parts {};
  const char* end = strptime(copy.c_str(), "%Y-%m-%dT%H:%M:%S", &parts);
  if (end == nullptr || *end != '\0') return std::nullopt;
  // Let mktime() find out whether summer time applies.
  parts.tm_isdst = -1;
  const time_t seconds = mktime(&parts);
  return seconds > 0 ? std::optional<std::int64_t>(seconds) : std::nullopt;
}

}  // namespace lockstep::slurm
