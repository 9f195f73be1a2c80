// The pauses between tries that fail: each is longer than the one before, up to a limit. Pure.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>

namespace lockstep {

class Backoff {
 public:
  using Duration = std::chrono::milliseconds;

  struct Rules {
    Duration first;
    Duration longest;
    int percent = 200;  // of the pause before, rounded down to whole milliseconds
  };

  explicit constexpr Backoff(const Rules& rules) : rules_(rules) { reset(); }

  constexpr Duration next() {
    const Duration pause = next_;
    next_ = std::min(next_ * rules_.percent / 100, rules_.longest);
    return pause;
  }

  // A part of next() between an eighth and all of it, for clients that were refused together and
  // must not come back together. chance: a random byte. The eighth keeps a service that always
  // refuses from being asked without a pause.
  constexpr Duration next(std::uint8_t chance) {
    const Duration pause = next();
    return pause / 8 + pause * 7 / 8 * chance / 255;
  }

  // After a success: the next pause is the first again.
  constexpr void reset() { next_ = std::min(rules_.first, rules_.longest); }

 private:
  Rules rules_;
  Duration next_{};
};

}  // namespace lockstep
