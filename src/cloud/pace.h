// How fast providers are asked: pauses between tries, and a factor by which tests shorten what a
// provider's limits make us wait.
#pragma once

#include "cloud/provider.h"

#include <chrono>
#include <optional>
#include <string_view>

namespace lockstep::cloud {

// LOCKSTEP_CLOUD_PACE, 0 to 1: against fakes whose clocks run faster. 1 where it is not set.
double pace_of(const Ground& ground);
std::chrono::milliseconds paced(std::chrono::milliseconds time, double pace);

// Pauses of one question: half a second doubling to 20 s, of which each is a random part, so that
// not all who were refused come back at once.
class Backoff {
 public:
  Backoff(std::int64_t now_ms, std::chrono::milliseconds patience, double pace)
      : began_ms_(now_ms), patience_(patience.count()), pace_(pace) {}

  // retry_after: what the answer's field of that name says, which wins. nullopt: patience is over.
  std::optional<std::chrono::milliseconds> next(std::int64_t now_ms, std::string_view retry_after);

 private:
  std::int64_t began_ms_;
  std::int64_t patience_;
  std::int64_t paused_ = 0;  // without the factor
  double pace_;
  int tries_ = 0;
};

}  // namespace lockstep::cloud
