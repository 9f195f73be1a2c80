// The daemon that ends a rented machine when its lease says so, independent of any connection.
// Watches for work, stops jobs in time, and listens for the provider's notice.
#pragma once

#include "base/error.h"

namespace lockstep::machine {

// Runs `lockstep host-lease watch`, as root. Returns when the lease is gone or another daemon runs.
Result<int> watch_lease();

// Starts a daemon if none runs, in a session of its own. Returns once the daemon holds its lock.
Status start_lease_watch();

}  // namespace lockstep::machine
