// What a client asks of a machine's lease, by `lockstep host-lease`.
#pragma once

#include "base/error.h"

#include <string>
#include <vector>

namespace lockstep::machine {

// words:
//   begin          LeaseTerms as JSON on stdin: the lease, its daemon, its timer, and a fresh host
//                  key, which sshd does not show yet
//   show-key       now it does
//   keep           the same: another end, and another limit of being idle if it is not negative
//   hold SECONDS   being idle does not end it for so long
//   status         how it is
//   follow         the same, a line each time that something has changed, until stdin ends
//   watch          the daemon
//   resume         the same after a reboot, by systemd: with the lease that there was before
// Answers are one line of JSON: {"state": LeaseState}, with "host_key" after begin, and
// "fresh" and "note" as well after show-key; or {"error": TEXT}. Returns the exit code.
Result<int> serve_lease_request(const std::vector<std::string>& words);

}  // namespace lockstep::machine
