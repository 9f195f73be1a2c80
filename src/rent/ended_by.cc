#include "rent/ended_by.h"

#include "base/date_text.h"
#include "rent/guard.h"
#include "rent/guard_plan.h"
#include "rent/on_demand.h"

#include <algorithm>

namespace lockstep::rent {

EndedBy ended_by(const OnDemand& world, const cloud::Rental& rental) {
  using Word = GuardHosts::Word;
  if (ends_itself(rental)) return EndedBy::itself;
  if (guard_host_of(rental).empty())
    return wants_guard(rental) && guard_lives() ? EndedBy::guard : EndedBy::nobody;
  const Word word = world.guards().word_of(rental);
  if (word == Word::refuses) return EndedBy::nobody;
  return word == Word::silent ? EndedBy::unheard : EndedBy::guard;
}

std::int64_t fixed_end_ms(const OnDemand& world, const cloud::Rental& rental) {
  return cloud::fixed_end_ms(rental, [&](std::string_view name) {
    const cloud::Provider* known = world.providers().find(name);
    return known != nullptr && known->traits().fixed_end;
  });
}

std::int64_t certain_end_ms(const OnDemand& world, const cloud::Rental& rental) {
  const std::int64_t fixed = fixed_end_ms(world, rental);
  return fixed > 0 && rental.ends_ms > 0 ? std::min(fixed, rental.ends_ms) : rental.ends_ms;
}

std::string end_words(const OnDemand& world, const cloud::Rental& rental) {
  if (ended_by(world, rental) == EndedBy::nobody) return "its bill runs until you end it";
  return "it ends by itself at " + date_text(certain_end_ms(world, rental));
}

}  // namespace lockstep::rent
