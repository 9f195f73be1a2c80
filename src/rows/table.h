// The rows of a sweep: which values each row of `--sweep` or `--sweep-file` has. Pure.
#pragma once

#include "base/error.h"

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace lockstep::rows {

inline constexpr std::size_t kMostRows = 10'000;
inline constexpr std::size_t kMostNames = 64;
// Linux passes at most 128 KiB in one variable, and the rows of a file travel in one.
inline constexpr std::size_t kMostFile = 100'000;

struct Table {
  std::vector<std::string> names;              // "lr", "seed"
  std::vector<std::vector<std::string>> rows;  // a value for each name

  friend bool operator==(const Table&, const Table&) = default;
};

// Returns all combinations of the axes; the last axis changes fastest. An axis is
// "NAME=VALUE,VALUE", where "0-4" among the values means 0,1,2,3,4, and double quotes keep a comma:
// 'opt="a,b",c'. A name has letters, digits, "_", "-" and ".", and begins with a letter or "_".
Result<Table> grid(const std::vector<std::string>& axes);

// Reads a file of rows: names in the first line, then a row a line, as CSV (RFC 4180).
Result<Table> read_csv(std::string_view text);
// Prints a text that read_csv() reads.
std::string print_csv(const Table& table);

// Returns "lr=1e-3 seed=2".
std::string row_text(const Table& table, std::size_t row);
// Replaces {NAME} by the row's value, and {row} by the row's number. Other braces stay.
std::string filled(std::string_view word, const Table& table, std::size_t row);
// Returns the variables of a row: LOCKSTEP_SWEEP_ROW=2, LOCKSTEP_SWEEP_LR=1e-3.
std::vector<std::string> row_variables(const Table& table, std::size_t row);

// The values that name a row: "lr=1e-3,seed=2".
using Values = std::vector<std::pair<std::string, std::string>>;
Result<Values> wanted_values(std::string_view text);
bool has_values(const Table& table, std::size_t row, const Values& wanted);

// A set of rows as text, "3,7,12-40". The reader refuses rows that the table does not have.
Result<std::vector<std::size_t>> read_row_set(std::string_view text, std::size_t rows);
std::string print_row_set(const std::vector<std::size_t>& rows);  // rows: in rising order

}  // namespace lockstep::rows
