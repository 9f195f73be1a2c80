// How a job ended, or how it runs, in words, and what to change. Pure.
#pragma once

#include "slurm/pending_reason.h"

namespace lockstep::slurm {

// For a job in any phase but waiting.
Explanation explain_run(const JobStatus& job, const Surroundings& around);

// For a job in any phase.
Explanation explain(const JobStatus& job, const Surroundings& around);

}  // namespace lockstep::slurm
