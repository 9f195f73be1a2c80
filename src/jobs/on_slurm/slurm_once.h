// What keeps a job of a client elsewhere from being submitted twice: a client whose connection is
// lost before it hears Slurm's id asks again, under the same id of ours.
#pragma once

#include "base/error.h"
#include "io/fd.h"
#include "jobs/job_book.h"
#include "slurm/job_folder.h"

#include <optional>
#include <string>

namespace lockstep::jobs::on_slurm {

// One submission for clients at a time, of this user: an earlier one that goes on without its
// client has come to its end before the next one looks.
class SubmitLock {
 public:
  static Result<SubmitLock> take();

 private:
  io::Fd file_;
};

// Slurm's id of the job that was submitted from this folder; empty: there is none, and nothing is
// left of the folder.
Result<std::string> submitted_before(const slurm::JobFolder& folder);

// The same, of what Slurm's controller knows, for a folder that was handed in moments ago.
// canceled: it does not answer.
Result<std::string> queued_job(const slurm::JobFolder& folder);

// Written once Slurm has the job.
Status note_submitted(const slurm::JobFolder& folder, const jobs::KnownJob& job);
// nullopt: no job was submitted under this id here, as far as was noted.
std::optional<jobs::KnownJob> find_submitted(const std::string& id);

}  // namespace lockstep::jobs::on_slurm
