// The folder of a job on its host, jobs/ID in the state folder:
//   job.json    the JobSpec without its environment
//   state.json  the JobState, replaced at once
//   out, err    what the job has said
//   lock        held by the supervisor as long as it lives
//   report.json what happened, when it is over
#pragma once

#include "base/error.h"
#include "io/fd.h"
#include "job/job_spec.h"

#include <string>
#include <vector>

namespace lockstep::job {

class JobFiles {
 public:
  // Makes the folder, and takes the lock. already_exists where there is a job of that id, unless
  // the spec resumes it and its supervisor is gone.
  static Result<JobFiles> create(const JobSpec& spec);
  // not_found where there is none.
  static Result<JobFiles> open(const std::string& id);
  static std::vector<std::string> ids();  // of all jobs here, in no order

  const std::string& folder() const { return folder_; }
  std::string path(const char* name) const { return folder_ + "/" + name; }

  Status keep(const JobSpec& spec) const;  // without its environment
  Status keep(const JobState& state) const;
  // Stage::lost where the supervisor is gone without having told the end.
  Result<JobRecord> record() const;
  bool has_supervisor() const;
  // Opened for appending, made where it is missing.
  Result<io::Fd> output(const char* name) const;
  void remove() const;  // all of it

 private:
  explicit JobFiles(std::string folder) : folder_(std::move(folder)) {}

  std::string folder_;
  io::Fd lock_;  // the supervisor's
};

// Removes the oldest ended jobs, so that no more than `most` are kept.
void forget_old_jobs(std::size_t most);

}  // namespace lockstep::job
