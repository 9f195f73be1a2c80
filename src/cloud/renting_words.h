// Words and pauses that both halves of Renting use.
#pragma once

#include "cloud/rental.h"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <string>

namespace lockstep::cloud {

inline std::string offer_words(const Offer& offer) {
  return fmt::format("{} {}{} in {}", offer.provider, offer.type, offer.spot ? " (spot)" : "",
                     offer.zone.empty() ? offer.region : offer.zone);
}

inline bool all_gone(const Attempt& attempt) {
  return std::all_of(attempt.machines.begin(), attempt.machines.end(),
                     [](const Held& held) { return held.gone_ms != 0; });
}

// Machines are looked for often at first: most boot, and end, within a minute.
inline std::chrono::milliseconds look_pause(std::int64_t waited_ms) {
  return std::chrono::seconds(waited_ms < 10'000 ? 1 : 2);
}

}  // namespace lockstep::cloud
