#include "jobs/on_slurm/row_arrays.h"

#include "base/text.h"

#include <fmt/core.h>

#include <algorithm>

namespace lockstep::jobs::on_slurm {
namespace {

std::string tasks_text(const std::vector<std::size_t>& tasks, std::optional<std::int64_t> at_once) {
  const std::string list = rows::print_row_set(tasks);
  return at_once ? fmt::format("{}%{}", list, *at_once) : list;
}

// Returns the number behind "NAME=" in a list like "bf_interval=30,max_array_tasks=500".
std::optional<std::int64_t> parameter(const std::string& list, const std::string& name) {
  for (const std::string& each : split(list, ','))
    if (each.starts_with(name + "=")) return parse_int(each.substr(name.size() + 1));
  return std::nullopt;
}

}  // namespace

std::size_t array_rows_of(const std::map<std::string, std::string>& config) {
  const auto text = [&](const char* name) {
    const auto found = config.find(name);
    return found == config.end() ? std::string() : found->second;
  };
  std::int64_t most = kUsualArrayRows;
  // Slurm refuses the task number MaxArraySize itself.
  if (const auto size = parse_int(text("MaxArraySize"))) most = *size - 1;
  if (const auto tasks = parameter(text("SchedulerParameters"), "max_array_tasks"))
    most = std::min(most, *tasks);
  return static_cast<std::size_t>(
      std::clamp<std::int64_t>(most, 1, static_cast<std::int64_t>(rows::kMostRows)));
}

RowSpread spread_of(const std::vector<std::size_t>& rows, std::size_t array_rows) {
  if (rows.empty() || rows.back() < array_rows) return {.first_row = 0, .rows = array_rows};
  const std::size_t first = rows.front();
  const bool fit = rows.back() - first < array_rows;
  return {.first_row = fit ? first : first - first % array_rows, .rows = array_rows};
}

Result<std::vector<RowArray>> arrays_of(const std::vector<std::size_t>& rows,
                                        std::optional<std::int64_t> at_once,
                                        const RowSpread& spread) {
  if (rows.empty()) return fail(Errc::invalid_input, "the sweep has no row to run");
  if (at_once && *at_once < 1)
    return fail(Errc::invalid_input,
                fmt::format("--at-once must be at least 1 (got {})", *at_once));
  std::vector<RowArray> arrays;
  std::vector<std::size_t> tasks;
  std::vector<std::size_t> rows_of_array;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    tasks.push_back(spread.task_of(rows[i]));
    rows_of_array.push_back(rows[i]);
    const std::size_t index = spread.array_of(rows[i]);
    if (i + 1 < rows.size() && spread.array_of(rows[i + 1]) == index) continue;
    arrays.push_back({.index = index,
                      .first_row = spread.first_row + index * spread.rows,
                      .tasks = tasks_text(tasks, at_once),
                      .rows = std::exchange(rows_of_array, {})});
    tasks.clear();
  }
  return arrays;
}

std::string fewer_rows_hint(const std::vector<RowArray>& arrays, std::size_t count) {
  std::vector<std::size_t> rows;
  for (std::size_t i = 0; i < count; ++i)
    rows.insert(rows.end(), arrays[i].rows.begin(), arrays[i].rows.end());
  return "submit fewer rows: --sweep-only " + rows::print_row_set(rows);
}

std::vector<std::string> array_words(std::vector<std::string> settings, const RowArray& array,
                                     const std::string& previous) {
  constexpr std::string_view kDependency = "--dependency=";
  std::erase_if(settings, [](const std::string& word) { return word.starts_with("--array="); });
  settings.push_back("--array=" + array.tasks);
  if (previous.empty()) return settings;
  std::string after = "afterany:" + previous;
  // The user's condition may never come true. The array before this one is then canceled, which
  // alone must not begin this one.
  for (const std::string& word : settings)
    if (word.starts_with(kDependency))
      after = fmt::format("{},{}", word.substr(kDependency.size()), after);
  settings.push_back(std::string(kDependency) + after);
  return settings;
}

}  // namespace lockstep::jobs::on_slurm
