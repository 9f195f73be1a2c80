// Follows a job of Slurm's: prints the file of its output as it grows, and learns from the batch
// step's own words, else from Slurm, how it ended. The job goes on whatever becomes of this.
#pragma once

#include "base/error.h"
#include "jobs/job_book.h"
#include "jobs/on_slurm/slurm_submit.h"
#include "slurm/job_status.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace lockstep::jobs::on_slurm {

struct SlurmFollow {
  jobs::KnownJob job;
  SlurmPlace place;
  bool print = true;
  bool to_end = true;                      // false: what there is now
  bool json = false;                       // lines as objects
  bool fold = false;                       // equal lines of several ranks as one, for people
  std::optional<std::int64_t> lines = {};  // only the last so many
  std::optional<std::int64_t> rank = {};   // only lines of this rank
  std::int64_t from = 0;                   // the first byte of the output that is printed
};

struct SlurmEnding {
  job::Stage stage = job::Stage::running;
  int code = 0;
  std::int64_t ended_ms = 0;
  std::string words = {};  // one line, for people
  bool left = false;       // by a signal, before the end
  int signal = 0;
};

// Expects the handled signals blocked.
Result<SlurmEnding> follow_slurm_job(const SlurmFollow& request);

// How these jobs stand, in their order; all are jobs of Slurm's. nullopt: nobody knows.
Result<std::vector<std::optional<SlurmEnding>>> ask_slurm_jobs(
    const std::vector<jobs::KnownJob>& jobs);

// A job that was not submitted by Lockstep, by its number. not_found: Slurm does not know it.
Result<jobs::KnownJob> find_slurm_job(const std::string& number);

// scancel, and the end of it.
Result<SlurmEnding> cancel_slurm_job(const jobs::KnownJob& job, const SlurmPlace& place);

}  // namespace lockstep::jobs::on_slurm
