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

// Between looks at machines that boot or end: one that runs is noticed within 1.2 s. Providers that
// allow fewer questions have a pace of their own.
inline constexpr std::chrono::milliseconds kLookPause{800};

}  // namespace lockstep::cloud
