// The rows of a sweep on Slurm: an array job with a task, a folder and an output file for each row.
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

// Slurm's MaxArraySize is 1001 by default: an array has at most 1000 tasks beside task 0.
inline constexpr std::size_t kMostArrayRows = 1000;

// How the tasks of an array stand for rows.
struct RowArray {
  std::string tasks;          // the value of --array: "0-99%8"
  std::size_t first_row = 0;  // the row of task 0
};
// Returns the array for rows in rising order. invalid_input: more rows than an array may have.
Result<RowArray> array_of(const std::vector<std::size_t>& rows, std::optional<std::int64_t> at_once,
                          std::size_t first_row);
// Returns the value of --array for rows in rising order. first_row: the row of task 0.
std::string tasks_text(const std::vector<std::size_t>& rows, std::optional<std::int64_t> at_once,
                       std::size_t first_row);
// Returns the row of task 0: 0, or the first row if the rows are beyond the tasks of an array.
std::size_t first_row_of(const std::vector<std::size_t>& rows);

// Returns whether Slurm's id names this task: "12_3", or "12_[0-2,7%4]" for waiting tasks. Slurm
// cuts a long list, and "..." may then stand for any task. Pure.
bool has_task(std::string_view id, std::size_t task);

struct SlurmRow {
  std::size_t row = 0;
  std::optional<slurm::BatchState> own = {};  // nullopt: the batch step has not begun
  JobStatus status = {};
};
// Returns the status of each row. told: Slurm's reports about the array. Reads the rows' folders.
std::vector<SlurmRow> slurm_rows(const JobSweep& sweep, const SlurmPlace& place,
                                 const std::vector<slurm::JobReport>& told, std::int64_t now_ms);
// Combines the rows: "37 done, 4 running" in `why`. The code is 0 only if all rows are done. Pure.
JobStatus status_of_rows(const std::vector<SlurmRow>& rows);
// Returns the records of the begun rows for explain_rows(). Reads the reports of the failed rows.
std::vector<JobRow> records_of_rows(const std::vector<SlurmRow>& rows, const SlurmPlace& place);

// Asks Slurm about the array, and returns the rows.
Result<std::vector<SlurmRow>> ask_slurm_rows(const KnownJob& job, const JobSweep& sweep,
                                             const SlurmPlace& place, const SlurmWorld& world);
// Waits for the end of all rows. tell: says each change of the counts.
Result<Followed> follow_slurm_rows(const KnownJob& job, const JobSweep& sweep,
                                   const SlurmPlace& place, bool tell, const SlurmWorld& world);

// Returns where one row is, as a job of its own.
SlurmPlace place_of_row(const SlurmPlace& place, std::size_t row);

}  // namespace lockstep::jobs::on_slurm
