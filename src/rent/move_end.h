// Moves the end of a rental: tells the guard, then the machines, then the journal. The order
// matters: the journal must never promise time that the guard or a machine has not granted.
#pragma once

#include "base/error.h"
#include "hosts/host_link.h"
#include "rent/guard_talk.h"
#include "rent/rented_host.h"

#include <cstdint>
#include <functional>
#include <vector>

namespace lockstep::rent {

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
