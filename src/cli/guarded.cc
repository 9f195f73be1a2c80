#include "cli/guarded.h"

#include "cli/on_demand.h"
#include "cluster/guard.h"

#include <fmt/core.h>

#include <algorithm>

namespace lockstep::cli {
namespace {

bool needs_guard(const cloud::Attempt& attempt) {
  return attempt.open() && attempt.offer.ending == cloud::Ending::with_guard;
}

// Of a provider where something of it may live.
Status keys_of(const cluster::OnDemand& world, const cloud::Rental& rental) {
  for (const cloud::Attempt& attempt : rental.attempts)
    if (cloud::Provider* one = world.provider(attempt.offer.provider);
        attempt.open() && one != nullptr)
      LOCKSTEP_TRY(one->keys());
  return {};
}

}  // namespace

EndedBy ended_by(const cloud::Rental& rental) {
  if (std::none_of(rental.attempts.begin(), rental.attempts.end(), needs_guard))
    return EndedBy::itself;
  return cluster::wants_guard(rental) && cluster::guard_lives() ? EndedBy::guard : EndedBy::nobody;
}

const char* ended_by_name(EndedBy by) {
  if (by == EndedBy::itself) return "itself";
  return by == EndedBy::guard ? "guard" : "nobody";
}

std::string ended_by_words(std::string_view name) {
  if (name == "guard") return ", guarded here";
  return name == "nobody" ? ", nobody ends it but you" : "";
}

void keep_guarded(cluster::OnDemand& world, std::string_view program) {
  auto rentals = world.journal().open_rentals();
  if (!rentals || cluster::guard_lives()) return;
  std::erase_if(*rentals, [](const cloud::Rental& one) { return !cluster::wants_guard(one); });
  if (rentals->empty()) return;
  for (const cloud::Rental& rental : *rentals)
    if (const Status keys = keys_of(world, rental); !keys)
      return tell_line(program, fmt::format("no guard runs, so nobody ends '{}': {}",
                                            rental.cluster, keys.error().message));
  const std::string name = rentals->front().cluster;
  if (const auto up = cluster::need_guard(world); !up)
    return tell_line(program, fmt::format("nobody ends '{}': {}; {}", name, up.error().message,
                                          up.error().hint));
  tell_line(program, fmt::format("the guard of '{}' did not run; it runs again", name));
}

}  // namespace lockstep::cli
