// The rows of a sweep, out of a job's record and its hosts' answers. Pure.
#pragma once

#include "base/error.h"
#include "jobs/job_book.h"
#include "jobs/job_why.h"
#include "rows/row_book.h"
#include "rows/table.h"

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::jobs {

// A row and the host that has its record.
struct JobRow {
  rows::RowRecord record;
  std::string host;
};

// The rows that a job was started for.
struct JobSweep {
  rows::Table table;
  std::vector<std::size_t> rows;
};
bool has_rows(const KnownJob& job);
// nullopt: the job is no sweep. corrupt: its plan is not readable.
Result<std::optional<JobSweep>> sweep_of(const KnownJob& job);

// Returns the record that counts for each row, in the order of rows. A row with exit code 0 on any
// host is done; else its latest beginning counts. Rows that the sweep does not have are left out.
std::vector<JobRow> merge_rows(const JobSweep& sweep, std::vector<JobRow> rows);
// Returns a job's plan with the rows in it. Once rented machines are terminated, the job's record
// alone has the rows. Returns these rows; nullopt: the plan has none, so ask the hosts.
std::string plan_with_rows(const std::string& plan, const std::vector<JobRow>& rows);
std::optional<std::vector<JobRow>> rows_of_plan(const std::string& plan);
// Returns how a user runs the rows again that are not done, if the machines of the job are gone.
std::string again_words(const JobSweep& sweep, const std::vector<JobRow>& rows);

// Returns the rows of the sweep without exit code 0 so far.
std::vector<std::size_t> undone_rows(const JobSweep& sweep, const std::vector<JobRow>& rows);

// "NAME[12]" or "NAME[lr=1e-3,seed=2]": the word before the bracket, and the text in it. nullopt:
// the word names no row.
struct RowWord {
  std::string job;
  std::string row;
};
std::optional<RowWord> read_row_word(std::string_view word);
// Returns the number of the row. invalid_input: there is no such row, or more than one.
Result<std::size_t> find_row(const JobSweep& sweep, const std::string& text);

// Explains a sweep: the counts, and the failed rows in groups of the same last line, the largest
// first. status: of the whole job. rows: merged.
Explanation explain_rows(const KnownJob& job, const JobStatus& status, const JobSweep& sweep,
                         const std::vector<JobRow>& rows);

}  // namespace lockstep::jobs
