#include "jobs/job_book.h"

#include "base/text.h"
#include "hosts/place_json.h"
#include "hosts/state_file.h"

#include <fmt/core.h>

#include <utility>

namespace lockstep::jobs {
namespace {

constexpr std::size_t kMostOfAName = 100;
constexpr std::string_view kColumns =
    "SELECT id, name, place, command, nodes, plan, created_ms, stage, code, ended_ms FROM jobs ";

Result<KnownJob> job_of(const db::Statement& row) {
  KnownJob job{
      .id = row.text(0), .name = row.text(1), .place = row.text(2), .command = row.text(3)};
  LOCKSTEP_TRY_ASSIGN(job.nodes, hosts::parse_places(row.text(4)));
  job.plan = row.text(5);
  job.created_ms = row.number(6);
  job.stage = job::stage_of(row.text(7)).value_or(job::Stage::lost);
  job.code = static_cast<int>(row.number(8));
  // What has not ended has no time of its end: the column says since when it is away.
  (job.is_over() ? job.ended_ms : job.away_ms) = row.number(9);
  return job;
}

}  // namespace

std::string slurm_plan_head(const std::string& number) {
  return R"({"slurm":{"job":")" + number + "\"";
}

Result<JobBook> JobBook::open(const std::string& folder) {
  LOCKSTEP_TRY_ASSIGN(db::Database database, hosts::open_state(folder));
  return JobBook(std::move(database));
}

Status JobBook::add(const KnownJob& job) const {
  LOCKSTEP_TRY_ASSIGN(db::Statement add,
                      database_.prepare("INSERT INTO jobs VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"));
  add.bind(1, job.id);
  add.bind(2, job.name);
  add.bind(3, job.place);
  add.bind(4, job.command);
  add.bind(5, hosts::places_text(job.nodes));
  add.bind(6, job.plan);
  add.bind(7, job.created_ms);
  add.bind(8, job::stage_name(job.stage));
  add.bind(9, job.code);
  add.bind(10, job.ended_ms);
  return add.run();
}

Result<std::vector<KnownJob>> JobBook::select(std::string_view where, const std::string& word,
                                              std::size_t most) const {
  LOCKSTEP_TRY_ASSIGN(db::Statement rows,
                      database_.prepare(fmt::format("{}{} ORDER BY created_ms DESC, id LIMIT {}",
                                                    kColumns, where, most)));
  if (!where.empty()) rows.bind(1, word);
  std::vector<KnownJob> jobs;
  while (true) {
    LOCKSTEP_TRY_ASSIGN(const bool row, rows.step());
    if (!row) return jobs;
    LOCKSTEP_TRY_ASSIGN(KnownJob job, job_of(rows));
    jobs.push_back(std::move(job));
  }
}

Result<KnownJob> JobBook::find(const std::string& word) const {
  LOCKSTEP_TRY_ASSIGN(auto jobs, select("WHERE id = ?", word, 1));
  if (jobs.empty()) {
    LOCKSTEP_TRY_ASSIGN(jobs, select("WHERE name = ?", word, 1));
  }
  if (jobs.empty() && !word.empty() && word.find_first_not_of("0123456789") == std::string::npos) {
    // Slurm counts anew when its state is lost: the newest job of that number is meant.
    LOCKSTEP_TRY_ASSIGN(jobs,
                        select("WHERE substr(plan, 1, length(?1)) = ?1", slurm_plan_head(word), 1));
  }
  if (jobs.empty() && !word.empty()) {
    LOCKSTEP_TRY_ASSIGN(jobs, select("WHERE substr(id, 1, length(?1)) = ?1", word, 2));
  }
  if (jobs.size() > 1)
    return fail(Errc::invalid_input, fmt::format("several jobs begin with {}: {} and {}",
                                                 printable(word), jobs[0].id, jobs[1].id));
  if (jobs.empty())
    return fail(Errc::not_found, fmt::format("there is no job '{}'", printable(word)),
                "lockstep jobs lists those that there are");
  return std::move(jobs.front());
}

Result<std::vector<KnownJob>> JobBook::going_on(const std::string& name) const {
  return select("WHERE name = ? AND stage NOT IN ('ended', 'lost')", name, kMostOfAName);
}

Result<std::int64_t> JobBook::note_away(const std::string& id, std::int64_t now_ms) const {
  LOCKSTEP_TRY_ASSIGN(db::Statement note,
                      database_.prepare("UPDATE jobs SET ended_ms = ? WHERE id = ? AND "
                                        "ended_ms = 0 AND stage NOT IN ('ended', 'lost')"));
  note.bind(1, now_ms);
  note.bind(2, id);
  LOCKSTEP_TRY(note.run());
  LOCKSTEP_TRY_ASSIGN(const auto jobs, select("WHERE id = ?", id, 1));
  return jobs.empty() ? now_ms : jobs.front().away_ms;
}

Result<std::vector<KnownJob>> JobBook::list(std::size_t most) const {
  return select("", {}, most);
}

Status JobBook::remove(const std::string& id) const {
  LOCKSTEP_TRY_ASSIGN(db::Statement remove, database_.prepare("DELETE FROM jobs WHERE id = ?"));
  remove.bind(1, id);
  return remove.run();
}

Status JobBook::note_plan(const std::string& id, const std::string& plan) const {
  LOCKSTEP_TRY_ASSIGN(db::Statement note,
                      database_.prepare("UPDATE jobs SET plan = ? WHERE id = ?"));
  note.bind(1, plan);
  note.bind(2, id);
  return note.run();
}

Status JobBook::note(const std::string& id, job::Stage stage, int code,
                     std::int64_t ended_ms) const {
  LOCKSTEP_TRY_ASSIGN(
      db::Statement note,
      database_.prepare("UPDATE jobs SET stage = ?, code = ?, ended_ms = ? WHERE id = ?"));
  note.bind(1, job::stage_name(stage));
  note.bind(2, code);
  note.bind(3, ended_ms);
  note.bind(4, id);
  return note.run();
}

}  // namespace lockstep::jobs
