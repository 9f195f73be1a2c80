#include "cli/sweep_options.h"

#include "base/text.h"
#include "io/fd.h"

#include <fmt/core.h>

#include <cstdlib>
#include <numeric>
#include <utility>

namespace lockstep::cli {
namespace {

Status check_alone(const SweepOptions& options) {
  const char* lone = options.gpus_per_job ? "--gpus-per-job"
                     : options.at_once    ? "--at-once"
                     : options.sweep_only ? "--sweep-only"
                                          : nullptr;
  if (lone == nullptr) return {};
  return fail(Errc::invalid_input, std::string(lone) + " needs --sweep or --sweep-file");
}

Result<rows::Table> read_rows_file(const std::string& path) {
  // A value with a line break is the rows themselves.
  const bool file = path.find('\n') == std::string::npos;
  // The reader refuses a longer file, so read a byte more than the limit.
  auto text = file ? io::read_file(path, rows::kMostFile + 1) : path;
  // A missing file is a mistake in the command line.
  if (!text) return fail(Errc::invalid_input, "--sweep-file: " + text.error().message);
  auto table = rows::read_csv(*text);
  if (!table)
    return Failure(std::move(table).error().within("--sweep-file " + printable(path, 200)));
  // Quotes may make the rows longer than they travel.
  if (rows::print_csv(*table).size() > rows::kMostFile)
    return fail(Errc::invalid_input,
                fmt::format("--sweep-file {}: its rows have over {} bytes with their quotes",
                            printable(path, 200), rows::kMostFile));
  return table;
}

}  // namespace

Group sweep_group() {
  return {"Sweep",
          {
              {.name = "sweep",
               .field = into<&SweepOptions::sweep>,
               .metavar = "NAME=V,V...",
               .help = "run the command once for each value, {NAME} being the value in the "
                       "script's arguments, and LOCKSTEP_SWEEP_NAME in its environment; 0-4 is "
                       "0,1,2,3,4; given again: every combination; --explain prints the rows",
               .own = true,
               .shapes_job = true},
              {.name = "sweep-file",
               .field = into<&SweepOptions::sweep_file>,
               .metavar = "FILE",
               .help = "the rows as CSV, with the names in the first line; a value of several "
                       "lines is the rows themselves",
               .own = true,
               .shapes_job = true},
              {.name = "sweep-only",
               .field = into<&SweepOptions::sweep_only>,
               .metavar = "ROWS",
               .help = "only these rows, as 3,7,12-40; the first is 0",
               .own = true},
              {.name = "gpus-per-job",
               .field = into<&SweepOptions::gpus_per_job>,
               .metavar = "K",
               .help = "GPUs of a row: a host runs as many rows at once as it has room for; 0: a "
                       "row at a time sees them all",
               .shown_default = "the row's workers",
               .own = true},
              {.name = "at-once",
               .field = into<&SweepOptions::at_once>,
               .metavar = "N",
               .help = "rows that run at once, on all hosts together; hosts without GPUs run one "
                       "each if it is not given",
               .own = true},
          }};
}

bool sweeps(const Parsed& parsed) {
  return parsed.has("sweep") || parsed.has("sweep-file");
}

std::vector<std::string_view> sweep_names() {
  std::vector<std::string_view> names;
  for (const Option& option : sweep_group().options)
    names.push_back(option.name);
  return names;
}

Status keep_rows(Parsed& parsed) {
  const auto file = parsed.text("sweep-file");
  if (!file) return {};
  LOCKSTEP_TRY_ASSIGN(const auto table, read_rows_file(*file));
  parsed.values["sweep-file"] = rows::print_csv(table);
  return {};
}

Result<std::optional<SweepRows>> sweep_rows(const SweepOptions& options) {
  const char* brought = std::getenv(kSweepMark) == nullptr ? nullptr : std::getenv(kSweepVariable);
  if (!options.sweeps() && brought == nullptr) {
    LOCKSTEP_TRY(check_alone(options));
    return std::optional<SweepRows>();
  }
  if (!options.sweep.empty() && options.sweep_file)
    return fail(Errc::invalid_input, "--sweep and --sweep-file both say which rows there are",
                "leave one of them out");
  SweepRows found;
  if (!options.sweep.empty()) {
    LOCKSTEP_TRY_ASSIGN(found.table, rows::grid(options.sweep));
  } else if (options.sweep_file) {
    LOCKSTEP_TRY_ASSIGN(found.table, read_rows_file(*options.sweep_file));
  } else {
    LOCKSTEP_TRY_ASSIGN(found.table, rows::read_csv(brought));
  }
  if (options.sweep_only) {
    auto chosen = rows::read_row_set(*options.sweep_only, found.table.rows.size());
    if (!chosen) return Failure(std::move(chosen).error().within("--sweep-only"));
    found.chosen = std::move(*chosen);
  } else {
    found.chosen.resize(found.table.rows.size());
    std::iota(found.chosen.begin(), found.chosen.end(), 0U);
  }
  return std::optional(std::move(found));
}

std::string sweep_text(const SweepRows& rows, const Parsed& parsed) {
  std::string text;
  for (const std::size_t row : rows.chosen) {
    std::vector<std::string> command = {parsed.script.value_or("")};
    for (const std::string& word : parsed.script_args)
      command.push_back(rows::filled(word, rows.table, row));
    text += fmt::format("{:>4}  {}  {}\n", row, printable(rows::row_text(rows.table, row), 1000),
                        printable(shell_join(command), 1000));
  }
  return text;
}

}  // namespace lockstep::cli
