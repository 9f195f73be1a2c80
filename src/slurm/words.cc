#include "slurm/words.h"

#include <fmt/core.h>

#include <time.h>

#include <algorithm>

namespace lockstep::slurm {

std::string duration_text(std::int64_t seconds) {
  seconds = std::max<std::int64_t>(seconds, 0);
  const std::string clock =
      fmt::format("{:02}:{:02}:{:02}", seconds / 3600 % 24, seconds / 60 % 60, seconds % 60);
  return seconds < 86400 ? clock : fmt::format("{}-{}", seconds / 86400, clock);
}

std::string about_text(std::int64_t seconds) {
  const std::int64_t minutes = (seconds + 30) / 60;
  if (seconds < 90) return fmt::format("{} s", std::max<std::int64_t>(seconds, 0));
  if (minutes < 90) return fmt::format("{} min", minutes);
  if (minutes < 2880) return fmt::format("{} h {} min", minutes / 60, minutes % 60);
  return fmt::format("{} days {} h", minutes / 1440, minutes / 60 % 24);
}

std::string moment_text(std::int64_t unix_seconds) {
  const time_t moment = unix_seconds;
  struct tm parts {};
  char text[32];
  if (localtime_r(&moment, &parts) == nullptr ||
      strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S", &parts) == 0)
    return fmt::format("{} s after 1970", unix_seconds);
  return text;
}

std::string nodes_text(int count) {
  return count == 1 ? "1 node" : fmt::format("{} nodes", count);
}

}  // namespace lockstep::slurm
