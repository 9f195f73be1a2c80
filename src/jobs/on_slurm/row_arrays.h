// Spreads the rows of a sweep over array jobs of Slurm: an array has only as many tasks as the site
// allows. Pure.
#pragma once

#include "base/error.h"
#include "rows/table.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace lockstep::jobs::on_slurm {

// Slurm's MaxArraySize is 1001 by default.
inline constexpr std::size_t kUsualArrayRows = 1000;

// Returns how many rows an array may have. config: as of slurm::parse_config(); may be empty.
std::size_t array_rows_of(const std::map<std::string, std::string>& config);

// Row R is task (R - first_row) % rows of array (R - first_row) / rows, as long as the job lives.
struct RowSpread {
  std::size_t first_row = 0;
  std::size_t rows = rows::kMostRows;  // of an array at most

  std::size_t array_of(std::size_t row) const { return behind_first(row) / rows; }
  std::size_t task_of(std::size_t row) const { return behind_first(row) % rows; }

 private:
  std::size_t behind_first(std::size_t row) const { return row > first_row ? row - first_row : 0; }
};
// Returns the spread of rows, which are in rising order. If one array can hold all rows, there is
// one array. If the row numbers are small enough, each task has the number of its row.
RowSpread spread_of(const std::vector<std::size_t>& rows, std::size_t array_rows);

// One array job to submit.
struct RowArray {
  std::size_t index = 0;      // among all arrays of the job
  std::size_t first_row = 0;  // the row of task 0
  std::string tasks = {};     // the value of --array: "0-99%8"
  std::vector<std::size_t> rows = {};
};
// Returns the arrays that run these rows, which are in rising order. invalid_input: no row, or
// at_once is below 1.
Result<std::vector<RowArray>> arrays_of(const std::vector<std::size_t>& rows,
                                        std::optional<std::int64_t> at_once,
                                        const RowSpread& spread);

// Returns whether each array must wait for the one before it: the %N of an array bounds that array
// alone. rows: how many are submitted.
inline bool must_chain(std::size_t rows, std::optional<std::int64_t> at_once) {
  return at_once && std::cmp_greater(rows, *at_once);
}

// Bounds the calls of sbatch and squeue on a site with small arrays.
inline constexpr std::size_t kMostArrays = 100;

// Returns the hint to submit only the rows of the first `count` arrays.
std::string fewer_rows_hint(const std::vector<RowArray>& arrays, std::size_t count);

// sbatch's option that keeps a job from beginning.
inline constexpr const char* kHold = "--hold";

// Returns sbatch's options for one array. settings: the options of the whole sweep. previous:
// Slurm's id of the array that must end first; empty: none.
std::vector<std::string> array_words(std::vector<std::string> settings, const RowArray& array,
                                     const std::string& previous);

}  // namespace lockstep::jobs::on_slurm
