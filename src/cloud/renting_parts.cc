#include "cloud/renting_parts.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

namespace lockstep::cloud {

void tell(const RentParts& parts, RentEvent::Kind kind, const Offer* offer, std::string text) {
  if (parts.tell) parts.tell({.kind = kind, .offer = offer, .text = std::move(text)});
}

Status rest(const RentParts& parts, const Rental& rental, std::chrono::milliseconds time) {
  constexpr std::chrono::milliseconds kLook = std::chrono::seconds(2);
  do {
    if (parts.journal.end_is_asked(rental.id).value_or(false))
      return fail(Errc::unavailable,
                  fmt::format("'{}' is terminated by another lockstep", rental.cluster));
    // Pause in parts: `lockstep down` in another terminal marks the rental, and must not wait for
    // minutes.
    const std::chrono::milliseconds part = std::min(time, kLook);
    LOCKSTEP_TRY(parts.web.pause(part));
    time -= part;
  } while (time > std::chrono::milliseconds(0));
  return {};
}

std::string offer_words(const Offer& offer) {
  return fmt::format("{} {}{} in {}", offer.provider, offer.type, offer.spot ? " (spot)" : "",
                     offer.zone.empty() ? offer.region : offer.zone);
}

Failure without_keys(const std::string& provider, const char* done) {
  return fail(Errc::unavailable,
              fmt::format("{}: without credentials its machines cannot be {}", provider, done),
              fmt::format("`lockstep cloud check {}` says where keys are looked for", provider));
}

}  // namespace lockstep::cloud
