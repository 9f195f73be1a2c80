#include "cloud/pace.h"

#include "base/id.h"
#include "base/text.h"

#include <algorithm>
#include <cmath>

namespace lockstep::cloud {

double pace_of(const Ground& ground) {
  const auto set = ground.env("LOCKSTEP_CLOUD_PACE");
  const auto factor = set ? parse_float(*set) : std::nullopt;
  return factor && *factor >= 0 && *factor <= 1 ? *factor : 1;
}

std::chrono::milliseconds paced(std::chrono::milliseconds time, double pace) {
  return std::chrono::milliseconds(std::llround(static_cast<double>(time.count()) * pace));
}

std::optional<std::chrono::milliseconds> Backoff::next(std::int64_t now_ms,
                                                       std::string_view retry_after) {
  constexpr std::int64_t kFirst = 500;
  constexpr std::int64_t kMost = 20'000;
  std::int64_t pause = std::min(kFirst << std::min(tries_++, 6), kMost);
  // At least an eighth of it, or a broken service would be asked without a pause.
  pause = pause / 8 + pause * 7 / 8 * static_cast<unsigned char>(random_key(1)[0]) / 255;
  if (const auto said = parse_int(retry_after); said && *said >= 0)
    pause = std::min<std::int64_t>(*said, 3600) * 1000;
  paused_ += pause;
  if (std::max(now_ms - began_ms_ + pause, paused_) > patience_) return std::nullopt;
  return paced(std::chrono::milliseconds(pause), pace_);
}

}  // namespace lockstep::cloud
