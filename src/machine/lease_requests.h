// What a client asks of a machine's lease, by `lockstep host-lease`.
#pragma once

#include "base/error.h"

#include <string>
#include <vector>

namespace lockstep::machine {

// words:
//   begin          LeaseTerms as JSON on stdin: a fresh host key, the lease, its daemon, its timer
//   keep           the same: another end, and another limit of being idle if it is not negative
//   hold SECONDS   being idle does not end it for so long
//   status         how it is
//   follow         the same, a line each time that something has changed, until stdin ends
//   watch          the daemon
// Answers are one line of JSON: {"state": LeaseState}, with "host_key", "fresh" and "note" after
// begin; or {"error": TEXT}. Returns the exit code.
Result<int> serve_lease_request(const std::vector<std::string>& words);

}  // namespace lockstep::machine
