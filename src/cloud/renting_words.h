// Words and pauses that both halves of Renting use.
#pragma once

#include "base/error.h"
#include "cloud/rental.h"

#include <fmt/core.h>

#include <chrono>
#include <cstdint>
#include <string>

namespace lockstep::cloud {

inline std::string offer_words(const Offer& offer) {
  return fmt::format("{} {}{} in {}", offer.provider, offer.type, offer.spot ? " (spot)" : "",
                     offer.zone.empty() ? offer.region : offer.zone);
}

// Where a provider's keys are missing nothing can be asked.
inline Failure without_keys(const std::string& provider, const char* done) {
  return fail(Errc::unavailable,
              fmt::format("{}: without its keys the machines there cannot be {}", provider, done),
              fmt::format("`lockstep cloud check {}` says where keys are looked for", provider));
}

// Whether an attempt has that machine.
inline bool holds(const Rental& rental, const std::string& id) {
  for (const Attempt& attempt : rental.attempts)
    for (const Held& held : attempt.machines)
      if (held.machine.id == id) return true;
  return false;
}

// Machines are looked for often at first: most boot, and end, within a minute.
inline std::chrono::milliseconds look_pause(std::int64_t waited_ms) {
  return std::chrono::seconds(waited_ms < 10'000 ? 1 : 2);
}

}  // namespace lockstep::cloud
