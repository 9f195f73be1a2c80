#include "jobs/job_rows.h"

#include "base/text.h"
#include "codec/json_members.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <utility>

namespace lockstep::jobs {
namespace {

constexpr std::size_t kMostPlan = 64UL << 20;
constexpr int kMostTries = 1'000'000;
constexpr std::size_t kShownGroups = 10;
constexpr std::size_t kShownRows = 5;
constexpr std::string_view kVariable = "LOCKSTEP_SWEEP_TABLE=";
constexpr const char* kRows = "rows";  // the member of a plan

Failure unreadable(const KnownJob& job) {
  return fail(Errc::corrupt, "the stored plan of job " + job.id + " is not readable");
}

// Returns the values of an option among the words before "--".
std::vector<std::string> values_of(const std::vector<std::string>& words, std::string_view option) {
  std::vector<std::string> values;
  for (const std::string& word : words) {
    if (word == "--") break;
    if (word.starts_with(option)) values.push_back(word.substr(option.size()));
  }
  return values;
}

// Only a row that was begun and has no end on a host that runs no more is lost.
std::string_view state_word(const JobRow& row, bool over) {
  switch (row.record.state) {
    case rows::RowState::done:
      return "done";
    case rows::RowState::failed:
      return "failed";
    case rows::RowState::lost:
      return "lost";
    case rows::RowState::running:
      break;
  }
  return over ? "lost" : "running";
}

// untold: the state of a row of which no host tells.
nlohmann::ordered_json row_json(const JobSweep& sweep, std::size_t row, const JobRow* known,
                                bool over, std::string_view untold) {
  nlohmann::ordered_json values = nlohmann::ordered_json::object();
  for (std::size_t i = 0; i < sweep.table.names.size(); ++i)
    values[sweep.table.names[i]] = sweep.table.rows[row][i];
  nlohmann::ordered_json json{{"row", row}, {"values", std::move(values)}};
  if (known == nullptr) {
    json["state"] = untold;
    return json;
  }
  json["state"] = state_word(*known, over);
  json["host"] = known->host;
  json["tries"] = known->record.tries;
  json["began_ms"] = known->record.began_ms;
  if (known->record.ended_ms > 0) {
    // The clock of the host may have been set back in between.
    const auto ms = std::max<std::int64_t>(known->record.ended_ms - known->record.began_ms, 0);
    json["ended_ms"] = known->record.ended_ms;
    json["seconds"] = static_cast<double>(ms) / 1000;
    json["code"] = known->record.code;
  }
  if (!known->record.last_line.empty()) json["last_line"] = known->record.last_line;
  if (const auto& step = known->record.last_step) {
    json["step"] = step->step;
    json["step_line"] = step->line;
  }
  return json;
}

std::string rows_text(const JobSweep& sweep, const std::vector<const JobRow*>& group) {
  std::string text;
  for (std::size_t i = 0; i < std::min(group.size(), kShownRows); ++i)
    text += fmt::format("    {:>4}  {}  on {}\n", group[i]->record.row,
                        printable(rows::row_text(sweep.table, group[i]->record.row), 200),
                        group[i]->host);
  if (group.size() > kShownRows) {
    std::vector<std::size_t> rest;
    for (std::size_t i = kShownRows; i < group.size(); ++i)
      rest.push_back(group[i]->record.row);
    text += fmt::format("          and {}\n", printable(rows::print_row_set(rest), 200));
  }
  return text;
}

// Returns the failed and lost rows by the line that says why, the largest group first.
std::vector<std::pair<std::string, std::vector<const JobRow*>>> groups_of(
    const std::vector<JobRow>& rows, bool over) {
  std::map<std::string, std::vector<const JobRow*>> by_line;
  for (const JobRow& row : rows) {
    const std::string_view state = state_word(row, over);
    if (state == "failed") by_line[row.record.last_line].push_back(&row);
    if (state == "lost") by_line["lost: the host recorded no end"].push_back(&row);
  }
  std::vector<std::pair<std::string, std::vector<const JobRow*>>> groups(by_line.begin(),
                                                                         by_line.end());
  std::stable_sort(groups.begin(), groups.end(), [](const auto& one, const auto& other) {
    return one.second.size() > other.second.size();
  });
  return groups;
}

}  // namespace

bool has_rows(const KnownJob& job) {
  const auto sweep = sweep_of(job);
  return sweep && *sweep;
}

Result<std::optional<JobSweep>> sweep_of(const KnownJob& job) {
  // Cheap for the many jobs that are no sweeps.
  if (job.plan.find("--sweep=") == std::string::npos &&
      job.plan.find(kVariable) == std::string::npos)
    return std::optional<JobSweep>();
  const nlohmann::json plan = codec::parse_json(job.plan, {.bytes = kMostPlan});
  if (!plan.is_object() || !plan.contains("spec")) return std::optional<JobSweep>();
  const auto words = codec::texts_member(plan["spec"], "run");
  const auto axes = values_of(words, "--sweep=");
  JobSweep sweep;
  if (!axes.empty()) {
    auto table = rows::grid(axes);
    if (!table) return unreadable(job);
    sweep.table = std::move(*table);
  } else {
    for (const std::string& entry : codec::texts_member(plan["spec"], "env"))
      if (entry.starts_with(kVariable)) {
        auto table = rows::read_csv(entry.substr(kVariable.size()));
        if (!table) return unreadable(job);
        sweep.table = std::move(*table);
      }
    if (sweep.table.rows.empty()) return std::optional<JobSweep>();
  }
  const auto only = values_of(words, "--sweep-only=");
  sweep.rows.resize(sweep.table.rows.size());
  std::iota(sweep.rows.begin(), sweep.rows.end(), 0U);
  if (!only.empty()) {
    auto chosen = rows::read_row_set(only.back(), sweep.table.rows.size());
    if (!chosen) return unreadable(job);
    sweep.rows = std::move(*chosen);
  }
  return std::optional(std::move(sweep));
}

std::vector<JobRow> merge_rows(const JobSweep& sweep, std::vector<JobRow> rows) {
  std::map<std::size_t, JobRow> best;
  for (JobRow& row : rows) {
    // A host may tell of any row.
    if (!std::binary_search(sweep.rows.begin(), sweep.rows.end(), row.record.row)) continue;
    const auto [at, added] = best.try_emplace(row.record.row, row);
    if (added) continue;
    const bool was_done = at->second.record.state == rows::RowState::done;
    const bool is_done = row.record.state == rows::RowState::done;
    // A host may tell any number.
    const int tries = std::min(at->second.record.tries + row.record.tries, kMostTries);
    if (is_done != was_done ? is_done : row.record.began_ms > at->second.record.began_ms)
      at->second = std::move(row);
    at->second.record.tries = tries;
  }
  std::vector<JobRow> merged;
  merged.reserve(best.size());
  for (auto& [number, row] : best)
    merged.push_back(std::move(row));
  return merged;
}

std::string plan_with_rows(const std::string& plan, const std::vector<JobRow>& rows) {
  nlohmann::json json = codec::parse_json(plan, {.bytes = kMostPlan});
  if (!json.is_object()) return plan;
  json[kRows] = nlohmann::json::array();
  for (const JobRow& row : rows) {
    nlohmann::json known(rows::to_json({row.record}).front());
    known["host"] = row.host;
    json[kRows].push_back(std::move(known));
  }
  return codec::print_json(json);
}

std::optional<std::vector<JobRow>> rows_of_plan(const std::string& plan) {
  const nlohmann::json json = codec::parse_json(plan, {.bytes = kMostPlan});
  if (!json.is_object() || !json.contains(kRows)) return std::nullopt;
  auto records = rows::records_from_json(json[kRows]);
  if (!records) return std::nullopt;
  std::vector<JobRow> rows;
  for (std::size_t i = 0; i < records->size(); ++i)
    rows.push_back(
        {.record = std::move((*records)[i]), .host = codec::text_member(json[kRows][i], "host")});
  return rows;
}

std::string again_words(const JobSweep& sweep, const std::vector<JobRow>& rows) {
  return fmt::format("the same command with --sweep-only {} runs the rows again that are not done",
                     rows::print_row_set(undone_rows(sweep, rows)));
}

std::vector<std::size_t> undone_rows(const JobSweep& sweep, const std::vector<JobRow>& rows) {
  std::vector<std::size_t> undone = sweep.rows;
  for (const JobRow& row : rows)
    if (row.record.state == rows::RowState::done) std::erase(undone, row.record.row);
  return undone;
}

std::optional<RowWord> read_row_word(std::string_view word) {
  const std::size_t bracket = word.find('[');
  if (bracket == std::string_view::npos || bracket == 0 || !word.ends_with(']')) return {};
  return RowWord{.job = std::string(word.substr(0, bracket)),
                 .row = std::string(word.substr(bracket + 1, word.size() - bracket - 2))};
}

Result<std::size_t> find_row(const JobSweep& sweep, const std::string& text) {
  if (text.find('=') == std::string::npos) {
    constexpr const char* kForm = "name one, as 12 or lr=1e-3,seed=2";
    const auto rows = rows::read_row_set(text, sweep.table.rows.size());
    if (!rows)
      return fail(rows.error().code, rows.error().message, rows.error().hint.empty() ? "" : kForm);
    if (rows->size() != 1)
      return fail(Errc::invalid_input, fmt::format("'{}' names several rows", printable(text, 60)),
                  kForm);
    if (!std::binary_search(sweep.rows.begin(), sweep.rows.end(), rows->front()))
      return fail(Errc::invalid_input, fmt::format("row {} was not submitted", rows->front()),
                  "--sweep-only left it out");
    return rows->front();
  }
  LOCKSTEP_TRY_ASSIGN(const auto wanted, rows::wanted_values(text));
  std::vector<std::size_t> found;
  for (const std::size_t row : sweep.rows)
    if (rows::has_values(sweep.table, row, wanted)) found.push_back(row);
  if (found.size() == 1) return found.front();
  if (found.empty())
    return fail(Errc::invalid_input, fmt::format("no row has {}", printable(text, 100)));
  return fail(Errc::invalid_input,
              fmt::format("{} rows have {}: {}", found.size(), printable(text, 100),
                          printable(rows::print_row_set(found), 100)));
}

Explanation explain_rows(const KnownJob& job, const JobStatus& status, const JobSweep& sweep,
                         const std::vector<JobRow>& rows) {
  const bool over = status.is_over();
  const auto groups = groups_of(rows, over);
  Explanation said;
  said.text = fmt::format("{} ({}) on {}: {}, {}\n", job.id, printable(job.name, 100),
                          printable(job.place, 100), state_name(status.state), status.why);
  for (std::size_t i = 0; i < std::min(groups.size(), kShownGroups); ++i)
    said.text += fmt::format("  {} {}: {}\n{}", groups[i].second.size(),
                             groups[i].second.size() == 1 ? "row" : "rows", groups[i].first,
                             rows_text(sweep, groups[i].second));
  if (groups.size() > kShownGroups)
    said.text += fmt::format("  and {} other reasons\n", groups.size() - kShownGroups);
  said.advice_at = said.text.size();
  if (!groups.empty())
    said.text += over ? fmt::format(
                            "`lockstep resume {}` runs the rows again that are not done; "
                            "`lockstep logs '{}[{}]'` shows the output of one\n",
                            job.id, job.id, groups.front().second.front()->record.row)
                      : fmt::format("`lockstep logs '{}[{}]'` shows the output of one\n", job.id,
                                    groups.front().second.front()->record.row);
  said.json = {{"id", job.id},           {"name", job.name},
               {"on", job.place},        {"nodes", node_names(job)},
               {"command", job.command}, {"state", state_name(status.state)},
               {"why", status.why},      {"rows", nlohmann::ordered_json::array()}};
  if (status.code) said.json["code"] = *status.code;
  const bool all_told = std::all_of(status.nodes.begin(), status.nodes.end(),
                                    [](const NodeStatus& node) { return node.state.has_value(); });
  const std::string_view untold = untold_rows(all_told, !over);
  for (const std::size_t row : sweep.rows) {
    const auto known = std::find_if(rows.begin(), rows.end(),
                                    [&](const JobRow& each) { return each.record.row == row; });
    said.json["rows"].push_back(
        row_json(sweep, row, known == rows.end() ? nullptr : &*known, over, untold));
  }
  return said;
}

}  // namespace lockstep::jobs
