// Explains a job of this machine's Slurm, also a job submitted without Lockstep.
#pragma once

#include "base/error.h"
#include "jobs/job_why.h"
#include "jobs/on_slurm/slurm_world.h"

#include <string>

namespace lockstep::jobs::on_slurm {

// Explains a job by Slurm's words, and a job of ours also by the records in its folder. number:
// Slurm's. known: the job's record; nullptr: it is not ours. not_found: neither Slurm nor the
// folder knows the job, or Slurm's commands are not here.
Result<Explanation> explain_slurm_job(const std::string& number, const KnownJob* known,
                                      const SlurmWorld& world = {});

}  // namespace lockstep::jobs::on_slurm
