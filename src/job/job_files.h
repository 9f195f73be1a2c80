// The folder of a job on its host, jobs/ID in the state folder:
//   job.json    the JobSpec without its environment, which may hold secrets
//   state.json  the PartState, replaced in one step
//   out, err    the job's output
//   lock        held by the supervisor as long as it lives
//   report.json the failure report, once the job has ended
//   report.json.rows/rows.jsonl the record of a sweep's rows (rows/row_book.h)
#pragma once

#include "base/error.h"
#include "io/file_lock.h"
#include "job/job_spec.h"

#include <string>
#include <vector>

namespace lockstep::job {

class JobFiles {
 public:
  // Makes the folder and takes the lock. already_exists: there is a job with this id. A spec that
  // resumes a job may reuse the folder once the old supervisor is gone.
  static Result<JobFiles> create(const JobSpec& spec);
  // Opens the folder of an existing job; takes no lock. not_found: no job with this id.
  static Result<JobFiles> open(const std::string& id);
  static std::vector<std::string> ids();  // of all jobs on this host, unsorted

  const std::string& folder() const { return folder_; }
  std::string path(const char* name) const { return folder_ + "/" + name; }

  Status keep(const JobSpec& spec) const;  // without its environment
  Status keep(const PartState& state) const;
  // Returns spec and state. The stage is `lost` if the supervisor has gone without recording an
  // end.
  Result<JobRecord> record() const;
  // Returns what is recorded of a sweep's rows on this host. Empty: nothing.
  std::vector<rows::RowRecord> rows() const;
  bool has_supervisor() const;
  // Opens an output for appending; makes the file if needed.
  Result<io::Fd> output(const char* name) const;
  void remove() const;  // removes the whole folder

 private:
  explicit JobFiles(std::string folder) : folder_(std::move(folder)) {}

  std::string folder_;
  io::FileLock lock_;  // held only by the supervisor's object
};

// Removes the oldest ended jobs until at most `most` remain.
void forget_old_jobs(std::size_t most);

}  // namespace lockstep::job
