// Follows a job of this machine's Slurm: prints its output file as it grows. The end is read from
// the batch step's own record, or else asked from Slurm. The job does not depend on the follower.
#pragma once

#include "base/error.h"
#include "jobs/job.h"
#include "jobs/on_slurm/slurm_submit.h"
#include "jobs/on_slurm/slurm_world.h"
#include "slurm/ask_jobs.h"
#include "slurm/job_folder.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace lockstep::jobs::on_slurm {

struct SlurmFollow {
  jobs::KnownJob job;
  SlurmPlace place;
  FollowOptions options = {};  // always OnStop::leave; `gone` is not used
  std::int64_t from = 0;       // first byte of the output to print
};

// Follows the job. The handled signals must be blocked.
Result<Followed> follow_slurm_job(const SlurmFollow& request, const SlurmWorld& world = {});

// Returns the question about the job with this number of Slurm's. Slurm may have given the number
// to another job since: slurm::is_of() tells.
slurm::JobAsked asked_of(const jobs::KnownJob& job, const std::string& number);
// Returns the questions about all arrays of a sweep, or about another job. The first is about
// SlurmPlace::job.
std::vector<slurm::JobAsked> asked_arrays(const jobs::KnownJob& job, const SlurmPlace& place);

// Returns the status of each job, in their order. All must be jobs of this machine's Slurm.
// nullopt: neither Slurm nor the job's folder knows it.
Result<std::vector<std::optional<JobStatus>>> ask_slurm_jobs(
    const std::vector<jobs::KnownJob>& jobs, const SlurmWorld& world = {});

// Returns the record of a job submitted without Lockstep, without asking Slurm about it.
jobs::KnownJob unrecorded_job(const std::string& number);
// Returns a job submitted without Lockstep, by its Slurm id. not_found: Slurm does not know the
// job.
Result<jobs::KnownJob> find_slurm_job(const std::string& number, const SlurmWorld& world = {});

// Combines the batch step's record with Slurm's status. The batch step's record wins. own: nullopt:
// nothing was recorded. status: nullptr: Slurm was not asked, or does not know the job. Pure.
JobStatus batch_status(const std::optional<slurm::BatchState>& own, const slurm::JobReport* status,
                       std::int64_t now_ms);

}  // namespace lockstep::jobs::on_slurm
