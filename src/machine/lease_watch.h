// The process on a rented machine that ends it when its lease says so, whoever is connected. It
// sees what works, stops jobs in time, and hears the notice that the machine will be taken away.
#pragma once

#include "base/error.h"

namespace lockstep::machine {

// `lockstep host-lease watch`, as root. Returns when the lease is gone, or another such process is
// there.
Result<int> watch_lease();

// Starts one where there is none, in a session of its own; back when it watches.
Status start_lease_watch();

}  // namespace lockstep::machine
