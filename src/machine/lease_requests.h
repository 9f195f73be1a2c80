// The requests that a client sends for a machine's lease, by `lockstep host-lease`.
#pragma once

#include "base/error.h"

#include <string>
#include <vector>

namespace lockstep::machine {

// Serves one request and returns the exit code. words:
//   begin          stdin: LeaseTerms as JSON. Starts the lease with its daemon and timer
//   make-key       makes a new host key, which sshd does not show yet
//   show-key       makes sshd show the new host key
//   keep           stdin: LeaseTerms. Sets the end, and the idle limit unless negative
//   hold SECONDS   suspends the idle limit for that long
//   status         prints the state
//   follow         prints the state at each change, until stdin ends
//   watch          runs the daemon
//   resume         runs the daemon after a reboot (by systemd) with the lease from before
// Answers are one line of JSON: {"state": LeaseState}, with "host_key" and "seen" after make-key,
// and "host_key", "fresh" and "note" after show-key; or {"error": TEXT}.
Result<int> serve_lease_request(const std::vector<std::string>& words);

}  // namespace lockstep::machine
