// A `lockstep run` on this machine, without a supervisor: a job as long as its process lives. It
// leaves no record, so nobody knows how it ended once it is gone.
#pragma once

#include "jobs/here/local_runs.h"
#include "jobs/job.h"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::jobs::here {

// "pid-4711": how `lockstep jobs` names the run, and what the other commands take.
std::string local_id(pid_t pid);
// nullopt: the word names no local run, or one that is gone.
std::optional<KnownJob> find_local_job(std::string_view word);
bool is_local_job(const KnownJob& job);
KnownJob known_job(const LocalRun& run);

class LocalJob : public Job {
 public:
  using Job::Job;
  Result<JobStatus> status() override;
  // With `print`: invalid_input, as the output went to the terminal of the run.
  Result<Followed> follow(const FollowOptions& options) override;
  // Sends SIGTERM and waits for the end of the run.
  Result<JobStatus> cancel() override;
  Result<Resumed> resume(const std::vector<std::string>& env) override;

 private:
  pid_t pid() const;
  bool runs() const;
};

}  // namespace lockstep::jobs::here
