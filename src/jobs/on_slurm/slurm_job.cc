#include "jobs/on_slurm/slurm_job.h"

#include "jobs/on_slurm/slurm_follow.h"
#include "jobs/on_slurm/slurm_why.h"
#include "slurm/scancel_command.h"

namespace lockstep::jobs::on_slurm {

Result<JobStatus> SlurmJob::status() {
  LOCKSTEP_TRY_ASSIGN(const auto statuses, ask_slurm_jobs({record_}, world_));
  return statuses.at(0).value_or(JobStatus{.state = JobState::lost});
}

Result<Explanation> SlurmJob::why() {
  return explain_slurm_job(place_.job, &record_, world_);
}

Result<Followed> SlurmJob::follow(const FollowOptions& options) {
  return follow_slurm_job({.job = record_, .place = place_, .options = options}, world_);
}

// scancel returns at once. The job may still save its work, so wait for the end.
Result<JobStatus> SlurmJob::cancel() {
  const auto told =
      slurm::ask_tool(world_.run, slurm::scancel_command(place_.job), "cancel job " + place_.job);
  if (!told) {
    // scancel fails for a job that has just ended. Return the end of the job then.
    auto now = status();
    if (now && now->code) return now;
    return Failure(told.error());
  }
  LOCKSTEP_TRY_ASSIGN(Followed followed, follow({.print = false}));
  if (followed.left)
    return Failure({Errc::canceled, "the end of the job was not awaited", {}, followed.signal});
  return std::move(followed.status);
}

Result<Resumed> SlurmJob::resume(const std::vector<std::string>& env) {
  (void)env;
  return fail(Errc::invalid_input, "only Slurm can resume a Slurm job",
              "scontrol requeue " + place_.job + ", or submit it again");
}

}  // namespace lockstep::jobs::on_slurm
