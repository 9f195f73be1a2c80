// A `lockstep run` on this machine without a supervisor: a job for as long as its process lives.
// Such a run leaves no record, so its end is not known once the process is gone.
#pragma once

#include "jobs/here/local_runs.h"
#include "jobs/job.h"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::jobs::here {

// Returns "pid-4711": the name in `lockstep jobs`, which other commands accept.
std::string local_id(pid_t pid);
// Finds a local run by that name. nullopt: the word names no local run, or the run has ended.
std::optional<KnownJob> find_local_job(std::string_view word);
bool is_local_job(const KnownJob& job);
KnownJob known_job(const LocalRun& run);

class LocalJob : public Job {
 public:
  using Job::Job;
  Result<JobStatus> status() override;
  Result<Explanation> why() override;
  // Waits for the end. invalid_input with `print`: the output went to the terminal of the run.
  Result<Followed> follow(const FollowOptions& options) override;
  // Sends SIGTERM and waits for the end of the run.
  Result<JobStatus> cancel() override;
  Result<Resumed> resume(const std::vector<std::string>& env) override;

 private:
  pid_t pid() const;
  bool runs() const;
};

}  // namespace lockstep::jobs::here
