#include "base/duration_text.h"

#include <fmt/core.h>

#include <algorithm>

namespace lockstep {

std::string about_text(std::int64_t seconds) {
  const std::int64_t minutes = (seconds + 30) / 60;
  if (seconds < 90) return fmt::format("{} s", std::max<std::int64_t>(seconds, 0));
  if (minutes < 90) return fmt::format("{} min", minutes);
  if (minutes < 2880) return fmt::format("{} h {} min", minutes / 60, minutes % 60);
  return fmt::format("{} days {} h", minutes / 1440, minutes / 60 % 24);
}

}  // namespace lockstep
