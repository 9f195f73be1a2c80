// The jobs that run now, for commands whose user has named none.
#pragma once

#include "jobs/places/job_refresh.h"

#include <vector>

namespace lockstep::jobs::places {

// Returns the runs on this machine, the jobs of the book that have not ended, the newest first, and
// those of owned_jobs(). Asks the hosts of the book's jobs, because the states there may be old.
Result<std::vector<KnownJob>> running_jobs(const JobBook& book, const PlacesWorld& world = {});

}  // namespace lockstep::jobs::places
