// What has become of the machines of a rented job, as their provider sees it. Asked with a world of
// its own each time, so on any thread.
#pragma once

#include "cli/remote_run.h"
#include "cloud/rental.h"

namespace lockstep::cli {

// One of them at least, by the provider's word.
bool machines_gone(const cloud::Rental& rental);

// Whether they may have ended themselves, being idle after the job's end, while nothing could be
// heard of it. Begun again it would do all of its work twice, at the user's expense.
bool may_be_done(const cloud::Rental& rental, const RemoteOutcome& ended);

}  // namespace lockstep::cli
