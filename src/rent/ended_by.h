// Says who terminates a rental, and when at the latest.
#pragma once

#include "cloud/rental.h"

#include <cstdint>
#include <string>

namespace lockstep::rent {

class OnDemand;

enum class EndedBy {
  itself,
  guard,
  unheard,  // a guard on another host, which was not reached
  nobody,
};

// Returns who terminates the rental, as the guards on other hosts have said to this process.
EndedBy ended_by(const OnDemand& world, const cloud::Rental& rental);

// Returns when the provider ends the first machine of the rental, which no call can postpone
// (Traits::fixed_end). Unix ms; 0: no provider does, or no machine is alive.
std::int64_t fixed_end_ms(const OnDemand& world, const cloud::Rental& rental);
// Returns the earliest certain end, by the lease or by the provider. Unix ms.
std::int64_t certain_end_ms(const OnDemand& world, const cloud::Rental& rental);
// Returns "it ends by itself at DATE", or that only the user can end it.
std::string end_words(const OnDemand& world, const cloud::Rental& rental);

}  // namespace lockstep::rent
