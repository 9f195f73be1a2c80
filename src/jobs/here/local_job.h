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
// Returns whether the word has the form of such a name, whether or not the run still exists.
bool is_local_id(std::string_view word);
// Returns whether the file name of the run's script is this word, as "train.py". A file that is an
// argument of the script counts too.
bool runs_script(const LocalRun& run, std::string_view word);
// Finds a local run by its script. invalid_input: several run it.
Result<std::optional<KnownJob>> find_by_script(std::string_view word);
bool is_local_job(const KnownJob& job);
KnownJob known_job(const LocalRun& run);

class LocalJob : public Job {
 public:
  using Job::Job;
  Result<JobStatus> status() override;
  Result<Explanation> why() override;
  Result<std::vector<looks::Answer>> looks(const looks::Question& question) override;
  Result<std::vector<looks::NodeRows>> ranks() override;
  Result<std::vector<status::EventAnswer>> events(std::int64_t after) override;
  Result<std::vector<PageThere>> page(int node) override;
  Result<ProfileAnswers> profile(const ProfileRequest& request) override;
  Status bring_trace(const TraceThere& trace, const std::string& to,
                     const std::function<Status()>& meanwhile) override;
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
