// A job on hosts over SSH, or on this machine under a supervisor. A Slurm job on another login host
// is one too: its host answers the same requests.
#pragma once

#include "jobs/job.h"

namespace lockstep::jobs::on_hosts {

class HostsJob : public Job {
 public:
  using Job::Job;
  Result<JobStatus> status() override;
  Result<Explanation> why() override;
  Result<Followed> follow(const FollowOptions& options) override;
  Result<JobStatus> cancel() override;
  Result<Resumed> resume(const std::vector<std::string>& env) override;
};

// Asks all hosts of a job for their records. nullopt: the host did not answer (a warning says why),
// or knows no such job.
Result<std::vector<std::optional<job::JobRecord>>> ask_records(const KnownJob& job);

}  // namespace lockstep::jobs::on_hosts
