// Moves the end of a rental: tells the guard, then the machines, then the journal. The order
// matters: the journal must never promise time that the guard or a machine has not granted.
#pragma once

#include "base/error.h"
#include "cloud/rental.h"
#include "hosts/host_link.h"
#include "rent/guard_talk.h"
#include "rent/rented_host.h"

#include <cstdint>
#include <functional>
#include <vector>

namespace lockstep::rent {

struct KeptEnd {
  std::int64_t ms = 0;
  bool fixed = false;  // the provider ends the machines at that time, whatever the lease says
};
// Returns the end of the rental so many seconds from now, as far as the budget pays for it; never
// earlier than the present end. fixed_ms: as fixed_end_ms(). A lease cannot outlast that end: the
// machines would be gone before the promised time, without a message. Pure.
KeptEnd kept_end(const cloud::Rental& rental, std::int64_t fixed_ms, std::int64_t seconds,
                 std::int64_t now_ms);

// The parties that keep a rental's end. ends_ms: Unix time.
struct EndKeepers {
  std::function<Status(std::int64_t ends_ms, GuardNewsKind kind)> guard;
  // Sets the leases of these machines. Returns one answer for each, in the same order.
  std::function<Result<std::vector<LeaseAnswer>>(const std::vector<hosts::HostPlace>& machines,
                                                 std::int64_t ends_ms)>
      leases;
  std::function<Status(std::int64_t ends_ms)> journal;
};

// Moves the end from old_ms to new_ms. Returns the first refusal. Parties that granted the new end
// then get the old end back, as far as they answer: no machine may run on, billed, after the end in
// the journal.
Status move_end(const EndKeepers& keepers, const std::vector<hosts::HostPlace>& machines,
                std::int64_t old_ms, std::int64_t new_ms);

}  // namespace lockstep::rent
