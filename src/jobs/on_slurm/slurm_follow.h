// Follows a job of this machine's Slurm: prints the file of its output as it grows, and learns from
// the batch step's own words, else from Slurm, how the job ended. The job goes on whatever becomes
// of the follower.
#pragma once

#include "base/error.h"
#include "jobs/job.h"
#include "jobs/on_slurm/slurm_submit.h"
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
  FollowOptions options = {};  // OnStop::leave always; `gone` is not asked
  std::int64_t from = 0;       // the first byte of the output that is printed
};

// Expects the handled signals blocked.
Result<Followed> follow_slurm_job(const SlurmFollow& request);

// The status of each job, in their order; all are jobs of this machine's Slurm. nullopt: neither
// Slurm nor the job's folder knows.
Result<std::vector<std::optional<JobStatus>>> ask_slurm_jobs(
    const std::vector<jobs::KnownJob>& jobs);

// By its number, a job that Lockstep did not submit. not_found: Slurm does not know it.
Result<jobs::KnownJob> find_slurm_job(const std::string& number);

// What the batch step recorded counts before what Slurm made of it. own: nullopt: it has recorded
// nothing. status: nullptr: Slurm was not asked, or does not know the job. Pure.
JobStatus batch_status(const std::optional<slurm::BatchState>& own, const slurm::JobStatus* status,
                       std::int64_t now_ms);

}  // namespace lockstep::jobs::on_slurm
