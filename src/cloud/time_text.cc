#include "cloud/time_text.h"

#include <fmt/core.h>

#include <chrono>
#include <cstdio>

namespace lockstep::cloud {
namespace {

struct CivilTime {
  int year = 0;
  unsigned month = 0;
  unsigned day = 0;
  int hour = 0;
  int minute = 0;
  int second = 0;
};

std::optional<std::int64_t> civil_to_ms(const CivilTime& time) {
  const auto date =
      std::chrono::year(time.year) / std::chrono::month(time.month) / std::chrono::day(time.day);
  // Second 60 is a leap second.
  const bool good = date.ok() && time.year >= 1970 && time.year <= 9999 && time.hour >= 0 &&
                    time.hour < 24 && time.minute >= 0 && time.minute < 60 && time.second >= 0 &&
                    time.second <= 60;
  if (!good) return std::nullopt;
  const std::int64_t days = std::chrono::sys_days(date).time_since_epoch().count();
  return ((days * 24 + time.hour) * 60 + time.minute) * 60'000 + time.second * 1000LL;
}

// Takes a fraction such as ".5" or ".123456" off `rest`. Returns whole milliseconds.
std::int64_t take_fraction(std::string_view& rest) {
  if (!rest.starts_with('.')) return 0;
  rest.remove_prefix(1);
  std::int64_t ms = 0;
  std::int64_t unit = 100;
  while (!rest.empty() && rest.front() >= '0' && rest.front() <= '9') {
    ms += (rest.front() - '0') * unit;
    unit /= 10;
    rest.remove_prefix(1);
  }
  return ms;
}

}  // namespace

std::optional<std::int64_t> parse_iso_time(std::string_view text) {
  const std::string whole(text.substr(0, 40));
  CivilTime time;
  int used = 0;
  if (std::sscanf(whole.c_str(), "%4d-%2u-%2uT%2d:%2d:%2d%n", &time.year, &time.month, &time.day,
                  &time.hour, &time.minute, &time.second, &used) != 6)
    return std::nullopt;
  const auto ms = civil_to_ms(time);
  std::string_view rest = std::string_view(whole).substr(static_cast<std::size_t>(used));
  const std::int64_t fraction = take_fraction(rest);
  if (!ms || text.size() > whole.size()) return std::nullopt;
  if (rest == "Z") return *ms + fraction;
  int hours = 0;
  int minutes = 0;
  char sign = 0;
  const std::string zone(rest);
  if (zone.size() != 6 || std::sscanf(zone.c_str(), "%c%2d:%2d", &sign, &hours, &minutes) != 3 ||
      (sign != '+' && sign != '-'))
    return std::nullopt;
  const std::int64_t offset = (hours * 60 + minutes) * 60'000LL;
  return *ms + fraction + (sign == '+' ? -offset : offset);
}

std::string iso_time(std::int64_t unix_ms) {
  const std::int64_t day = 86'400'000;
  const std::chrono::sys_days days{std::chrono::days(unix_ms / day)};
  const std::chrono::year_month_day date(days);
  const std::int64_t seconds = unix_ms % day / 1000;
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}Z", static_cast<int>(date.year()),
                     static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()),
                     seconds / 3600, seconds / 60 % 60, seconds % 60);
}

}  // namespace lockstep::cloud
