#include "jobs/on_slurm/script_array.h"

#include "base/text.h"

#include <fmt/core.h>

#include <algorithm>
#include <string>

namespace lockstep::jobs::on_slurm {
namespace {

constexpr auto kMostTask = static_cast<std::int64_t>(rows::kMostRows) - 1;

// Adds the tasks of a piece of the list: "3", "0-8" or "0-8:2". Returns false for another form.
bool add_piece(std::string_view piece, std::vector<std::size_t>& tasks) {
  const auto number = [](std::string_view text) {
    // Slurm takes neither signs nor spaces.
    const bool digits = !text.empty() && text.find_first_not_of("0123456789") == text.npos;
    const auto value = digits ? parse_int(text) : std::nullopt;
    return value && *value <= kMostTask ? value : std::nullopt;
  };
  const std::size_t dash = piece.find('-');
  const std::size_t colon = piece.find(':');
  const bool has_step = colon != std::string_view::npos;
  if (has_step && (dash == std::string_view::npos || colon < dash)) return false;
  const auto step = has_step ? number(piece.substr(colon + 1)) : 1;
  const auto first = number(piece.substr(0, dash));
  const auto last = dash == std::string_view::npos
                        ? first
                        : number(piece.substr(dash + 1, has_step ? colon - dash - 1 : piece.npos));
  if (!first || !last || !step || *step < 1 || *last < *first) return false;
  for (std::int64_t task = *first; task <= *last; task += *step)
    tasks.push_back(static_cast<std::size_t>(task));
  return true;
}

}  // namespace

Result<SlurmSweep> sweep_of_array(std::string_view array) {
  SlurmSweep sweep;
  sweep.array = std::string(array);
  const std::size_t percent = array.find('%');
  bool good = true;
  if (percent != std::string_view::npos) {
    sweep.at_once = parse_int(array.substr(percent + 1));
    good = sweep.at_once.value_or(0) > 0;
  }
  for (const std::string& piece : split(array.substr(0, percent), ','))
    good = good && add_piece(piece, sweep.rows);
  if (!good)
    return fail(Errc::invalid_input,
                fmt::format("--array={} must be a list of tasks from 0 to {}",
                            printable(array, 100), kMostTask),
                "write --array=0-31, 1,3,5-7 or 1-9:2, and %4 behind it for four at once");
  std::sort(sweep.rows.begin(), sweep.rows.end());
  sweep.rows.erase(std::unique(sweep.rows.begin(), sweep.rows.end()), sweep.rows.end());
  // A row's number is its place in the table.
  sweep.table.names = {"task"};
  for (std::size_t task = 0; task <= sweep.rows.back(); ++task)
    sweep.table.rows.push_back({std::to_string(task)});
  return sweep;
}

}  // namespace lockstep::jobs::on_slurm
