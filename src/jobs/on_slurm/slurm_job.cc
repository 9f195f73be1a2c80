#include "jobs/on_slurm/slurm_job.h"

#include "jobs/on_slurm/slurm_follow.h"
#include "jobs/on_slurm/slurm_why.h"
#include "slurm/scancel_command.h"

#include <utility>

namespace lockstep::jobs::on_slurm {

Failure only_slurm_resumes(const std::string& number) {
  return fail(Errc::invalid_input, "only Slurm can resume a Slurm job",
              (number.empty() ? "" : "scontrol requeue " + number + ", or ") + "submit it again");
}

// The batch step's record has Slurm's number and the cause of the end of each run.
PlaceFacts SlurmJob::facts() const {
  PlaceFacts facts{.number = place_.job, .output = place_.output};
  const auto state = slurm_state(record_, place_);
  if (!state) return facts;
  std::vector<std::string> causes = state->earlier;
  std::vector<std::string> jobs = state->jobs;
  // While the job waits for its next run, `earlier` does not have the last run yet.
  if (state->stage == slurm::Stage::requeued) {
    causes.push_back(state->cause);
    jobs.push_back(state->job);
  }
  jobs.resize(causes.size());
  facts.earlier.emplace();
  for (std::size_t i = 0; i < causes.size(); ++i)
    facts.earlier->push_back({std::move(jobs[i]), std::move(causes[i])});
  facts.chain = state->chain;
  return facts;
}

Result<JobStatus> SlurmJob::status() {
  LOCKSTEP_TRY_ASSIGN(const auto statuses, ask_slurm_jobs({record_}, world_));
  return statuses.at(0).value_or(JobStatus{.state = JobState::lost});
}

Result<Explanation> SlurmJob::why() {
  // A job without a folder was submitted without Lockstep.
  return explain_slurm_job(place_.job, place_.folder.empty() ? nullptr : &record_, world_);
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
  return only_slurm_resumes(place_.job);
}

}  // namespace lockstep::jobs::on_slurm
