// Keeps a client's job from being submitted twice. A client that loses its connection before
// hearing Slurm's id repeats the request under the same id of ours.
#pragma once

#include "base/error.h"
#include "io/file_lock.h"
#include "jobs/job_book.h"
#include "jobs/on_slurm/slurm_world.h"
#include "slurm/job_folder.h"

#include <cstddef>
#include <optional>
#include <string>

namespace lockstep::jobs::on_slurm {

// A lock for one submission at a time by this user's clients. A submission that continues without a
// client is then complete before the next submission looks.
class SubmitLock {
 public:
  static Result<SubmitLock> take();

 private:
  io::FileLock file_;
};

// Returns Slurm's id of the job submitted from this folder. Empty: there is none, and the folder is
// removed.
Result<std::string> submitted_before(const slurm::JobFolder& folder, const SlurmWorld& world = {});

// Like submitted_before(), but asks only Slurm's controller, for a folder submitted moments ago.
// first_row: as in SbatchCall. canceled: the controller does not answer.
Result<std::string> queued_job(const slurm::JobFolder& folder, const SlurmWorld& world = {},
                               std::optional<std::size_t> first_row = {});

// Records the job, once Slurm has it.
Status note_submitted(const slurm::JobFolder& folder, const jobs::KnownJob& job);
// Returns the job recorded under this id; nullopt: none is.
std::optional<jobs::KnownJob> find_submitted(const std::string& id);

}  // namespace lockstep::jobs::on_slurm
