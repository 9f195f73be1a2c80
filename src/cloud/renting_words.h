// Messages and pauses for the files of Renting.
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

// Makes the error for a provider whose credentials are missing.
inline Failure without_keys(const std::string& provider, const char* done) {
  return fail(Errc::unavailable,
              fmt::format("{}: without credentials its machines cannot be {}", provider, done),
              fmt::format("`lockstep cloud check {}` says where keys are looked for", provider));
}

// Returns whether an attempt of the rental has this machine.
inline bool holds(const Rental& rental, const std::string& id) {
  for (const Attempt& attempt : rental.attempts)
    for (const Held& held : attempt.machines)
      if (held.machine.id == id) return true;
  return false;
}

// The pause between two lists of machines that boot or end. A running machine is noticed within 1.2
// s. Providers that allow fewer calls slow them down by themselves.
inline constexpr std::chrono::milliseconds kLookPause{800};

}  // namespace lockstep::cloud
