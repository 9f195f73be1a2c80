// Asks providers what happened to the machines of a rented job. Each call opens its own OnDemand,
// so any thread may call.
#pragma once

#include "cli/remote_run.h"
#include "cloud/rental.h"

namespace lockstep::cli {

// Returns whether the provider says that at least one machine is gone. false also if the provider
// does not answer.
bool machines_gone(const cloud::Rental& rental);

// Returns whether the machines may have terminated themselves, idle after the job's end, while no
// host could be heard. Starting such a job again would repeat all of its work at the user's
// expense.
bool may_be_done(const cloud::Rental& rental, const RemoteOutcome& ended);

}  // namespace lockstep::cli
