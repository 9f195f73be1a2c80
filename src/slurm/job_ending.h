// Explains in words how a job runs or ended, and what to change. Pure.
#pragma once

#include "slurm/pending_reason.h"

namespace lockstep::slurm {

// Explains a job in any phase but waiting.
Explanation explain_run(const JobReport& job, const Surroundings& around);

// Explains a job in any phase.
Explanation explain(const JobReport& job, const Surroundings& around);

}  // namespace lockstep::slurm
