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
