// Asks the hosts of jobs how they stand, all at once, and notes it down.
#pragma once

#include "base/error.h"
#include "jobs/job_book.h"

#include <vector>

namespace lockstep::jobs::places {

// Changes those of `jobs` that had not ended. A host that does not answer within a few seconds is
// named in a warning; a job that none of its hosts tells of keeps its stage and gets away_ms.
Status refresh_jobs(const jobs::JobBook& book, std::vector<jobs::KnownJob>& jobs);

}  // namespace lockstep::jobs::places
