// The rows of a sweep on Slurm: array jobs with a task, a folder and an output file for each row.
// Row N has the folder rows/N in the job's folder, with a BatchState of its own.
#pragma once

#include "jobs/job.h"
#include "jobs/job_rows.h"
#include "jobs/on_slurm/slurm_submit.h"
#include "jobs/on_slurm/slurm_world.h"
#include "slurm/job_folder.h"
#include "slurm/job_report.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::jobs::on_slurm {

// Returns whether Slurm's id names this task: "12_3", or "12_[0-2,7%4]" for waiting tasks. Slurm
// cuts a long list, and "..." may then stand for any task. Pure.
bool has_task(std::string_view id, std::size_t task);

struct SlurmRow {
  std::size_t row = 0;
  std::optional<slurm::BatchState> own = {};  // nullopt: the batch step has not begun
  JobStatus status = {};
};
// Returns the status of each row. told: Slurm's reports about the arrays. Reads the rows' folders.
std::vector<SlurmRow> slurm_rows(const JobSweep& sweep, const SlurmPlace& place,
                                 const std::vector<slurm::JobReport>& told, std::int64_t now_ms);
// Combines the rows: "37 done, 4 running" in `why`. The code is 0 only if all rows are done. Pure.
JobStatus status_of_rows(const std::vector<SlurmRow>& rows);
// Returns the records of the begun rows for explain_rows(). Reads the reports of the failed rows.
std::vector<JobRow> records_of_rows(const std::vector<SlurmRow>& rows, const SlurmPlace& place);

// Asks Slurm about the arrays, and returns the rows.
Result<std::vector<SlurmRow>> ask_slurm_rows(const KnownJob& job, const JobSweep& sweep,
                                             const SlurmPlace& place, const SlurmWorld& world);
// Waits for the end of all rows. tell: says each change of the counts.
Result<Followed> follow_slurm_rows(const KnownJob& job, const JobSweep& sweep,
                                   const SlurmPlace& place, bool tell, const SlurmWorld& world);

// Returns where one row is, as a job of its own.
SlurmPlace place_of_row(const SlurmPlace& place, std::size_t row);

}  // namespace lockstep::jobs::on_slurm
