// Runs the rows of a sweep again that are not done, as another array job of the same script.
#pragma once

#include "jobs/job.h"
#include "jobs/job_rows.h"
#include "jobs/on_slurm/slurm_submit.h"
#include "jobs/on_slurm/slurm_world.h"

#include <string>
#include <vector>

namespace lockstep::jobs::on_slurm {

// The file in the job's folder with the names of the variables that the user gave, a line each.
inline constexpr const char* kVariablesFile = "variables";

// Submits the rows and records the new number. env: "NAME=value". invalid_input: rows still run,
// all rows are done, or a variable of the first submission is missing.
Result<Resumed> resume_slurm_rows(const KnownJob& job, const JobSweep& sweep, SlurmPlace place,
                                  std::vector<std::string> env, const SlurmWorld& world);

}  // namespace lockstep::jobs::on_slurm
