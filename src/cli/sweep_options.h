// The options of `--sweep`: one command with many rows of values.
#pragma once

#include "base/error.h"
#include "cli/options.h"
#include "rows/table.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::cli {

struct SweepOptions {
  std::vector<std::string> sweep;
  std::optional<std::string> sweep_file;
  std::optional<std::int64_t> gpus_per_job;
  std::optional<std::int64_t> at_once;
  std::optional<std::string> sweep_only;

  bool sweeps() const { return !sweep.empty() || sweep_file; }
};
// Returns the same for words that were only parsed.
bool sweeps(const Parsed& parsed);

// The rows of a file as CSV, for a host that has no such file. Counts as --sweep-file.
inline constexpr const char* kSweepVariable = "LOCKSTEP_SWEEP_TABLE";
// Set for the runners of a job on hosts, and for nothing below them.
inline constexpr const char* kSweepMark = "LOCKSTEP_SWEEP_PART";

Group sweep_group();
std::vector<std::string_view> sweep_names();  // of all rows of the group

// The rows of a sweep, and which of them run.
struct SweepRows {
  rows::Table table;
  std::vector<std::size_t> chosen;
};
// Reads the axes, the file or the variable. nullopt: no sweep is wanted. invalid_input: also if an
// option of the group stands alone.
Result<std::optional<SweepRows>> sweep_rows(const SweepOptions& options);

// Replaces the name of --sweep-file by the rows in it: a command that runs later or elsewhere
// cannot read the file.
Status keep_rows(Parsed& parsed);

// Returns a line for each chosen row, "12  lr=1e-3 seed=2", with the command as the row runs it.
std::string sweep_text(const SweepRows& rows, const Parsed& parsed);

}  // namespace lockstep::cli
