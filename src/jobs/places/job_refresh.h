// Asks the hosts of jobs for the jobs' states, all at the same time, and writes them into the
// journal.
#pragma once

#include "base/error.h"
#include "jobs/job_book.h"

#include <vector>

namespace lockstep::jobs::places {

// Updates the unended jobs. A warning names each host without an answer within 5 s. A job keeps its
// state and gets away_ms if no host knows about the job.
Status refresh_jobs(const jobs::JobBook& book, std::vector<jobs::KnownJob>& jobs);

}  // namespace lockstep::jobs::places
