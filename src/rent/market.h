// The market: all providers' offers for a wish.
#pragma once

#include "base/error.h"
#include "cloud/choice.h"
#include "cloud/offer.h"
#include "rent/asking.h"

#include <cstdint>

namespace lockstep::rent {

class OnDemand;
class Sweep;

struct Market {
  cloud::Catalog catalog;
  std::int64_t asked_ms = 0;  // 0: no provider was asked yet
};

// Asks all providers at the same time for offers that fit the wish. beside: a sweep, which is
// waited for too.
Result<Market> ask_market(OnDemand& world, const cloud::Wish& wish, bool fresh,
                          const Asking::Waiting& waiting = {}, Sweep* beside = nullptr);

}  // namespace lockstep::rent
