// A job of this machine's Slurm. Asks squeue and sacct, and reads the job's own folder.
#pragma once

#include "jobs/job.h"
#include "jobs/on_slurm/slurm_submit.h"
#include "jobs/on_slurm/slurm_world.h"

#include <string>
#include <utility>
#include <vector>

namespace lockstep::jobs::on_slurm {

// Returns the refusal to resume a job of Slurm, also of another host's. number: Slurm's; may be "".
Failure only_slurm_resumes(const std::string& number);

class SlurmJob : public Job {
 public:
  SlurmJob(KnownJob record, SlurmPlace place, SlurmWorld world = {})
      : Job(std::move(record)), place_(std::move(place)), world_(std::move(world)) {}
  PlaceFacts facts() const override;
  Result<JobStatus> status() override;
  Result<Explanation> why() override;
  Result<Followed> follow(const FollowOptions& options) override;
  Result<JobStatus> cancel() override;
  // Always invalid_input: Slurm itself queues jobs again.
  Result<Resumed> resume(const std::vector<std::string>& env) override;

 private:
  SlurmPlace place_;
  SlurmWorld world_;
};

}  // namespace lockstep::jobs::on_slurm
