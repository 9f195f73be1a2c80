#include "jobs/on_slurm/slurm_rows.h"

#include "base/backoff.h"
#include "base/log.h"
#include "base/text.h"
#include "codec/json.h"
#include "jobs/on_slurm/slurm_follow.h"
#include "rows/row_book.h"
#include "rows/table.h"
#include "slurm/verdict.h"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <utility>

namespace lockstep::jobs::on_slurm {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kLook{100};
constexpr std::size_t kMostReport = 8UL << 20;
// Many users share the controller.
constexpr Backoff::Rules kAsk{.first = milliseconds(1000), .longest = milliseconds(15'000)};

// Returns whether a piece of a list has the task: "3", "0-8" or "0-8:2".
bool piece_has(std::string_view piece, std::int64_t task) {
  std::int64_t step = 1;
  if (const std::size_t colon = piece.find(':'); colon != std::string_view::npos) {
    step = parse_int(piece.substr(colon + 1)).value_or(1);
    piece = piece.substr(0, colon);
  }
  const std::size_t dash = piece.find('-');
  const auto first = parse_int(piece.substr(0, dash));
  const auto last = dash == std::string_view::npos ? first : parse_int(piece.substr(dash + 1));
  return first && last && task >= *first && task <= *last && step > 0 &&
         (task - *first) % step == 0;
}

// Slurm's reports about tasks, of which there may be thousands.
class TaskReports {
 public:
  explicit TaskReports(const std::vector<slurm::JobReport>& told) {
    for (const slurm::JobReport& each : told) {
      own_.emplace(each.id, &each);
      if (each.id.find("_[") != std::string::npos) waiting_.push_back(&each);
    }
  }

  // Returns the report about a task. A record of its own is better than one of many waiting tasks.
  const slurm::JobReport* find(const std::string& job, std::size_t task) const {
    if (const auto own = own_.find(fmt::format("{}_{}", job, task)); own != own_.end())
      return own->second;
    for (const slurm::JobReport* each : waiting_)
      if (each->job == job && has_task(each->id, task)) return each;
    return nullptr;
  }

 private:
  std::map<std::string, const slurm::JobReport*> own_;
  std::vector<const slurm::JobReport*> waiting_;
};

// Returns Slurm's id of the array that has the row; empty: no array has it.
std::string array_of_row(const SlurmPlace& place, std::size_t row) {
  const std::size_t index = place.spread.array_of(row);
  if (index == 0) return place.job;
  return index > place.more.size() ? std::string() : place.more[index - 1];
}

slurm::JobFolder folder_of_row(const SlurmPlace& place, std::size_t row) {
  return slurm::JobFolder(slurm::JobFolder(place.folder).row(row));
}

// Returns the hang in which the row ended; empty: none.
std::string hang_of(const slurm::JobFolder& folder) {
  for (const std::string& report : folder.last_reports())
    if (Hang hang = hang_in(codec::parse_json(report, {.bytes = kMostReport})); !hang.words.empty())
      return hang.words;
  return {};
}

// Returns the line that says why a row failed. The agents' reports have the last line of the
// worker, which is the same for rows that fail alike.
std::string last_line_of(const SlurmRow& row, const SlurmPlace& place) {
  const slurm::JobFolder folder = folder_of_row(place, row.row);
  if (!row.own || row.own->cause != slurm::cause_name(slurm::Cause::worker)) {
    const bool told = row.own && !row.own->words.empty();
    const std::string line = told ? row.own->words : row.status.why;
    // Nodes may word the same hang differently.
    const bool is_hang = row.own && row.own->cause == slurm::cause_name(slurm::Cause::hang);
    const std::string hang = is_hang ? "" : hang_of(folder);
    return hang.empty() ? line : line + "; " + hang;
  }
  // The launches of a user's own script have reports of their own, the latest first.
  std::vector<std::string> folders = folder.launches();
  folders.insert(folders.begin(), folder.path());
  for (const std::string& each : folders)
    for (const std::string& text : slurm::JobFolder(each).reports(row.own->run)) {
      const nlohmann::json report = codec::parse_json(text);
      if (report.is_object() && report.contains("root_cause") && report["root_cause"].is_object())
        return rows::last_line_of(report, row.own->code);
    }
  return row.own->words;
}

std::string counts_text(const std::vector<std::pair<std::size_t, const char*>>& counts) {
  std::string text;
  for (const auto& [count, what] : counts) {
    const bool is_done = text.empty();  // said even if it is 0
    if (count > 0 || is_done) text += fmt::format("{}{} {}", is_done ? "" : ", ", count, what);
  }
  return text;
}

}  // namespace

bool has_task(std::string_view id, std::size_t task) {
  const std::size_t begin = id.find("_[");
  if (begin == std::string_view::npos) return id.ends_with(fmt::format("_{}", task));
  std::string_view list = id.substr(begin + 2);
  // Behind '%' stands how many tasks may run at once.
  list = list.substr(0, list.find_first_of("]%"));
  for (const std::string& piece : split(list, ','))
    // squeue cuts a long list with "...": the task may be in the rest.
    if (piece.ends_with("...") || piece_has(piece, static_cast<std::int64_t>(task))) return true;
  return false;
}

std::vector<SlurmRow> slurm_rows(const JobSweep& sweep, const SlurmPlace& place,
                                 const std::vector<slurm::JobReport>& told, std::int64_t now_ms) {
  const TaskReports reports(told);
  std::vector<SlurmRow> rows;
  rows.reserve(sweep.rows.size());
  for (const std::size_t row : sweep.rows) {
    SlurmRow& now = rows.emplace_back();
    now.row = row;
    if (auto own = folder_of_row(place, row).state()) now.own = std::move(*own);
    const auto* report = reports.find(array_of_row(place, row), place.spread.task_of(row));
    const bool ended = now.own && now.own->stage == slurm::Stage::ended;
    // Neither Slurm nor the row's folder tells an end.
    if (report != nullptr || ended) now.status = batch_status(now.own, report, now_ms);
  }
  return rows;
}

JobStatus status_of_rows(const std::vector<SlurmRow>& rows) {
  const auto count = [&](auto... states) {
    return static_cast<std::size_t>(std::count_if(rows.begin(), rows.end(), [&](const auto& row) {
      return ((row.status.state == states) || ...);
    }));
  };
  const std::size_t running = count(JobState::running, JobState::starting);
  const std::size_t queued = count(JobState::queued);
  const std::size_t failed = count(JobState::failed);
  const std::size_t canceled = count(JobState::canceled);
  const std::size_t lost = count(JobState::lost);
  JobStatus whole{.why = counts_text({{count(JobState::succeeded), "done"},
                                      {running, "running"},
                                      {failed, "failed"},
                                      {canceled, "canceled"},
                                      {lost, "lost"},
                                      {queued, "queued"}})};
  if (running + queued > 0) {
    whole.state = running > 0 ? JobState::running : JobState::queued;
    return whole;
  }
  for (const SlurmRow& row : rows)
    whole.ended_ms = std::max(whole.ended_ms, row.status.ended_ms);
  whole.canceled = whole.by_person = canceled > 0;
  // The result is known only if the end of a row that is not done is known, or all rows are done.
  if (failed + canceled == 0) {
    if (lost > 0 || rows.empty()) return whole;
    whole.state = JobState::succeeded;
    whole.code = 0;
    return whole;
  }
  whole.state = canceled > 0 ? JobState::canceled : JobState::failed;
  whole.code = 1;  // also if a canceled row ended well
  for (const SlurmRow& row : rows)
    if (row.status.code.value_or(0) != 0) {
      whole.code = row.status.code;
      break;
    }
  return whole;
}

std::vector<JobRow> records_of_rows(const std::vector<SlurmRow>& rows, const SlurmPlace& place) {
  std::vector<JobRow> records;
  for (const SlurmRow& row : rows) {
    if (row.status.state == JobState::queued) continue;
    JobRow& record = records.emplace_back();
    record.record = {.row = row.row, .ended_ms = row.status.ended_ms};
    record.host = "slurm";
    if (row.own) {
      record.host = row.own->host;
      record.record.began_ms = row.own->started_ms;
      record.record.tries = static_cast<int>(row.own->earlier.size()) + 1;
    }
    if (!row.status.is_over() || row.status.state == JobState::lost) continue;
    record.record.code = row.status.code.value_or(1);
    if (row.own && !row.own->step_line.empty())
      record.record.last_step = {.step = row.own->step, .line = row.own->step_line};
    record.record.state = rows::RowState::done;
    if (row.status.state == JobState::succeeded) continue;
    record.record.state = rows::RowState::failed;
    record.record.last_line = last_line_of(row, place);
  }
  return records;
}

Result<std::vector<SlurmRow>> ask_slurm_rows(const KnownJob& job, const JobSweep& sweep,
                                             const SlurmPlace& place, const SlurmWorld& world) {
  std::vector<slurm::JobAsked> asked = asked_arrays(job, place);
  LOCKSTEP_TRY_ASSIGN(auto told, slurm::ask_jobs(asked, slurm::Detail::usual, world.run));
  auto rows = slurm_rows(sweep, place, told, world.unix_ms());
  const bool some_lost = std::any_of(rows.begin(), rows.end(), [](const SlurmRow& row) {
    return row.status.state == JobState::lost;
  });
  if (!some_lost) return rows;
  for (slurm::JobAsked& array : asked)
    array.all_tasks = true;
  LOCKSTEP_TRY_ASSIGN(told, slurm::ask_jobs(asked, slurm::Detail::usual, world.run));
  return slurm_rows(sweep, place, told, world.unix_ms());
}

Result<Followed> follow_slurm_rows(const KnownJob& job, const JobSweep& sweep,
                                   const SlurmPlace& place, bool tell, const SlurmWorld& world) {
  Backoff pauses(kAsk);
  auto next_ask = world.now();
  bool away = false;
  std::string before;
  while (true) {
    if (world.now() >= next_ask) {
      const auto rows = ask_slurm_rows(job, sweep, place, world);
      // No answer says nothing about the rows.
      if (!rows && !std::exchange(away, true))
        log::warning("{}; the job goes on", rows.error().message);
      if (rows && std::exchange(away, false)) log::warning("Slurm answers again");
      if (rows) {
        Followed followed{.status = status_of_rows(*rows)};
        if (followed.status.why != before) {
          pauses.reset();
          if (tell) log::info("job {}: {}", place.job, followed.status.why);
          before = followed.status.why;
        }
        if (followed.status.is_over()) return followed;
      }
      next_ask = world.now() + pauses.next();
    }
    if (const int signal = world.wait_for_signal(kLook); signal != 0)
      return Followed{.left = true, .signal = signal, .status = {}};
  }
}

SlurmPlace place_of_row(const SlurmPlace& place, std::size_t row) {
  const slurm::JobFolder folder = folder_of_row(place, row);
  SlurmPlace found{.job = fmt::format("{}_{}", array_of_row(place, row), place.spread.task_of(row)),
                   .folder = folder.path(),
                   .output = {}};
  // A row of an earlier array has the number that it had there.
  if (const auto own = folder.state()) {
    found.output = own->output;
    if (slurm::is_job_id(own->job)) found.job = own->job;
  }
  return found;
}

}  // namespace lockstep::jobs::on_slurm
