#include "jobs/job_book.h"

#include "base/text.h"
#include "codec/json.h"
#include "codec/json_members.h"
#include "hosts/place_json.h"
#include "hosts/state_file.h"

#include <fmt/core.h>

#include <utility>

namespace lockstep::jobs {
namespace {

constexpr std::size_t kMostOfAName = 100;
constexpr std::string_view kColumns =
    "SELECT id, name, place, command, nodes, plan, created_ms, stage, code, ended_ms, "
    "job_facts.json FROM jobs LEFT JOIN job_facts ON job_facts.job = jobs.id ";

// The column `stage` holds only words that every version of lockstep knows. Finer states, and
// members added to a job's record since, are in the JSON of job_facts, which an older version
// leaves alone.
job::Stage stage_of(JobState state) {
  switch (state) {
    case JobState::queued:
      return job::Stage::queued;
    case JobState::starting:
      return job::Stage::prepared;
    case JobState::running:
    case JobState::restarting:
    case JobState::saving:
      return job::Stage::running;
    case JobState::succeeded:
    case JobState::failed:
    case JobState::canceled:
      return job::Stage::ended;
    case JobState::lost:
      break;
  }
  return job::Stage::lost;
}

JobState plain_state(job::Stage stage, int code) {
  switch (stage) {
    case job::Stage::prepared:
      return JobState::starting;
    case job::Stage::queued:
      return JobState::queued;
    case job::Stage::running:
      return JobState::running;
    case job::Stage::ended:
      return code == 0 ? JobState::succeeded : JobState::failed;
    case job::Stage::lost:
      break;
  }
  return JobState::lost;
}

// Reads a status. stage, code: the columns, which an older version may have changed after the facts
// were written. The columns win then.
JobStatus read_status(job::Stage stage, int code, const std::string& facts) {
  JobStatus status{.state = plain_state(stage, code)};
  // Column `code` is 0 for a job without an end, so only an ended job has an exit code.
  if (stage == job::Stage::ended) status.code = code;
  const nlohmann::json json = codec::parse_json(facts);
  if (!json.is_object()) return status;
  const auto finer = state_of(codec::text_member(json, "state"));
  if (!finer || stage_of(*finer) != stage) return status;
  status.state = *finer;
  status.why = codec::text_member(json, "why");
  status.canceled = status.by_person = *finer == JobState::canceled;
  return status;
}

Result<KnownJob> job_of(const db::Statement& row) {
  KnownJob job{
      .id = row.text(0), .name = row.text(1), .place = row.text(2), .command = row.text(3)};
  // The places are stored with the job: the registry of hosts may change while the job runs.
  LOCKSTEP_TRY_ASSIGN(job.nodes, hosts::parse_places(row.text(4)));
  job.plan = row.text(5);
  job.created_ms = row.number(6);
  job.status = read_status(job::stage_of(row.text(7)).value_or(job::Stage::lost),
                           static_cast<int>(row.number(8)), row.text(10));
  // An unended job has no end time: the column says since when the hosts are silent.
  (job.is_over() ? job.status.ended_ms : job.away_ms) = row.number(9);
  return job;
}

}  // namespace

std::vector<std::string> node_names(const KnownJob& job) {
  std::vector<std::string> names;
  names.reserve(job.nodes.size());
  for (const hosts::HostPlace& node : job.nodes)
    names.push_back(node.name);
  return names;
}

std::string slurm_plan_head(const std::string& number) {
  return R"({"slurm":{"job":")" + number + "\"";
}

Result<JobBook> JobBook::open(const std::string& folder) {
  LOCKSTEP_TRY_ASSIGN(db::Database database, hosts::open_state(folder));
  return over(std::move(database));
}

Result<JobBook> JobBook::open_to_look(const std::string& folder) {
  LOCKSTEP_TRY_ASSIGN(db::Database database, hosts::open_state_to_look(folder));
  return over(std::move(database));
}

Result<JobBook> JobBook::over(db::Database database) {
  // A table beside the others, not a migration: an older version can still open the file.
  LOCKSTEP_TRY(database.execute(
      "CREATE TABLE IF NOT EXISTS job_facts (job TEXT PRIMARY KEY REFERENCES jobs (id) "
      "ON DELETE CASCADE, json TEXT NOT NULL) STRICT"));
  return JobBook(std::move(database));
}

Status JobBook::add(const KnownJob& job) const {
  LOCKSTEP_TRY_ASSIGN(db::Statement add, database_.prepare("INSERT OR REPLACE INTO jobs VALUES "
                                                           "(?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"));
  add.bind(1, job.id);
  add.bind(2, job.name);
  add.bind(3, job.place);
  add.bind(4, job.command);
  add.bind(5, hosts::places_text(job.nodes));
  add.bind(6, job.plan);
  add.bind(7, job.created_ms);
  add.bind(8, job::stage_name(stage_of(job.status.state)));
  add.bind(9, std::int64_t{job.status.code.value_or(0)});
  add.bind(10, job.status.ended_ms);
  LOCKSTEP_TRY(add.run());
  return note_facts(job.id, job.status);
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
  // From the most exact meaning of the word to the least. A name means the newest job of this name.
  LOCKSTEP_TRY_ASSIGN(auto jobs, select("WHERE id = ?", word, 1));
  if (jobs.empty()) {
    LOCKSTEP_TRY_ASSIGN(jobs, select("WHERE name = ?", word, 1));
  }
  if (jobs.empty() && !word.empty() && word.find_first_not_of("0123456789") == std::string::npos) {
    // Slurm counts from 1 again if its state is lost, so take the newest job of that number.
    LOCKSTEP_TRY_ASSIGN(jobs,
                        select("WHERE substr(plan, 1, length(?1)) = ?1", slurm_plan_head(word), 1));
  }
  if (jobs.empty() && !word.empty()) {
    // Two rows are enough to see that the beginning is ambiguous.
    LOCKSTEP_TRY_ASSIGN(jobs, select("WHERE substr(id, 1, length(?1)) = ?1", word, 2));
  }
  if (jobs.size() > 1)
    return fail(Errc::invalid_input, fmt::format("several jobs begin with {}: {} and {}",
                                                 printable(word), jobs[0].id, jobs[1].id));
  if (jobs.empty())
    return fail(Errc::not_found, fmt::format("there is no job '{}'", printable(word)),
                "lockstep jobs lists the known jobs");
  return std::move(jobs.front());
}

Result<std::vector<KnownJob>> JobBook::going_on(const std::string& name) const {
  return select("WHERE name = ? AND stage NOT IN ('ended', 'lost')", name, kMostOfAName);
}

Result<std::int64_t> JobBook::note_away(const std::string& id, std::int64_t now_ms) const {
  LOCKSTEP_TRY_ASSIGN(db::Statement note,
                      database_.prepare("UPDATE jobs SET ended_ms = ? WHERE id = ? AND "
                                        // Only the first note counts: the user sees since when the
                                        // hosts do not answer.
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

Status JobBook::note(const std::string& id, const JobStatus& status) const {
  LOCKSTEP_TRY_ASSIGN(
      db::Statement note,
      database_.prepare("UPDATE jobs SET stage = ?, code = ?, ended_ms = ? WHERE id = ?"));
  note.bind(1, job::stage_name(stage_of(status.state)));
  note.bind(2, std::int64_t{status.code.value_or(0)});
  // 0 also ends a silence that note_away() has noted: the hosts have answered.
  note.bind(3, status.is_over() ? status.ended_ms : 0);
  note.bind(4, id);
  LOCKSTEP_TRY(note.run());
  return note_facts(id, status);
}

Status JobBook::note(const std::string& id, JobState state) const {
  return note(id, JobStatus{.state = state});
}

// json_patch keeps members written by a newer version.
Status JobBook::note_facts(const std::string& id, const JobStatus& status) const {
  LOCKSTEP_TRY_ASSIGN(
      db::Statement note,
      database_.prepare("INSERT INTO job_facts SELECT id, ?2 FROM jobs WHERE id = ?1 "
                        "ON CONFLICT (job) DO UPDATE SET json = json_patch(json, excluded.json)"));
  note.bind(1, id);
  note.bind(2, codec::print_json(
                   nlohmann::json{{"state", state_name(status.state)}, {"why", status.why}}));
  return note.run();
}

}  // namespace lockstep::jobs
