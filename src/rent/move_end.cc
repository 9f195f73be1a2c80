#include "rent/move_end.h"

#include <algorithm>

namespace lockstep::rent {
namespace {

// Sets the leases, and adds the machines with the new end to `granted`.
Status move_leases(const EndKeepers& keepers, const std::vector<hosts::HostPlace>& machines,
                   std::int64_t ends_ms, std::vector<hosts::HostPlace>& granted) {
  LOCKSTEP_TRY_ASSIGN(const auto answers, keepers.leases(machines, ends_ms));
  Status moved;
  for (std::size_t i = 0; i < answers.size(); ++i) {
    if (answers[i].error.empty())
      granted.push_back(machines[i]);
    else if (moved)
      moved = fail(Errc::unavailable, answers[i].error);
  }
  return moved;
}

}  // namespace

KeptEnd kept_end(const cloud::Rental& rental, std::int64_t fixed_ms, std::int64_t seconds,
                 std::int64_t now_ms) {
  cloud::Terms terms = rental.terms;
  terms.lifetime_s = seconds;
  const auto wanted = cloud::lease_end(terms, cloud::rate_now(rental),
                                       cloud::cost_so_far(rental, now_ms), now_ms, now_ms);
  const std::int64_t end = std::max(wanted.value_or(now_ms), rental.ends_ms);
  if (fixed_ms > 0 && fixed_ms < end) return {.ms = fixed_ms, .fixed = true};
  return {.ms = end};
}

Status move_end(const EndKeepers& keepers, const std::vector<hosts::HostPlace>& machines,
                std::int64_t old_ms, std::int64_t new_ms) {
  // Ask the guard first: without the news the guard would terminate the machines at the old end.
  LOCKSTEP_TRY(keepers.guard(new_ms, GuardNewsKind::working));
  std::vector<hosts::HostPlace> granted;
  Status moved = move_leases(keepers, machines, new_ms, granted);
  if (moved) moved = keepers.journal(new_ms);
  if (moved) return moved;
  // Take the granted time back. A gang must have a single end, and the journal still has the old
  // end.
  if (!granted.empty()) (void)keepers.leases(granted, old_ms);
  (void)keepers.guard(old_ms, GuardNewsKind::noting);
  return moved;
}

}  // namespace lockstep::rent
