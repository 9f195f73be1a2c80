#include "jobs/on_slurm/slurm_job.h"

#include "base/text.h"
#include "jobs/agent_answers.h"
#include "jobs/job_rows.h"
#include "jobs/on_slurm/array_orders.h"
#include "jobs/on_slurm/slurm_follow.h"
#include "jobs/on_slurm/slurm_resume.h"
#include "jobs/on_slurm/slurm_rows.h"
#include "jobs/on_slurm/slurm_why.h"
#include "jobs/profile_files.h"
#include "looks/question.h"
#include "proc/signals.h"
#include "status/profile_trace.h"

#include <fmt/core.h>

#include <sys/stat.h>

#include <utility>

namespace lockstep::jobs::on_slurm {
namespace {

constexpr std::size_t kMostReport = 8UL << 20;

// A node of the job names the folder, and may lie.
bool is_below(const std::string& path, const std::string& folder) {
  return path.starts_with(folder + "/") && (path + "/").find("/../") == std::string::npos;
}

bool is_no_folder(const std::string& path) {
  struct stat info {};
  return lstat(path.c_str(), &info) == 0 && !S_ISDIR(info.st_mode);
}

}  // namespace

Failure only_slurm_resumes(const std::string& number) {
  return fail(Errc::invalid_input, "only Slurm can resume a Slurm job",
              (number.empty() ? "" : "scontrol requeue " + number + ", or ") + "submit it again");
}

// The batch step's record has Slurm's number and the cause of the end of each run.
PlaceFacts SlurmJob::facts() const {
  PlaceFacts facts{.number = place_.job, .output = place_.output};
  if (!place_.more.empty()) facts.numbers = place_.jobs();
  std::erase(facts.numbers, "");
  const auto state = slurm_state(record_, place_);
  if (!state) return facts;
  std::vector<std::string> causes = state->earlier;
  std::vector<std::string> jobs = state->jobs;
  // While the job waits for its next run, `earlier` does not have the last run yet.
  if (state->stage == slurm::Stage::requeued) {
    causes.push_back(state->cause);
    jobs.push_back(state->job);
  }
  jobs.resize(causes.size());
  facts.earlier.emplace();
  for (std::size_t i = 0; i < causes.size(); ++i)
    facts.earlier->push_back({std::move(jobs[i]), std::move(causes[i])});
  facts.chain = state->chain;
  return facts;
}

Result<JobStatus> SlurmJob::status() {
  LOCKSTEP_TRY_ASSIGN(const auto statuses, ask_slurm_jobs({record_}, world_));
  return statuses.at(0).value_or(JobStatus{.state = JobState::lost});
}

Result<Explanation> SlurmJob::why() {
  LOCKSTEP_TRY_ASSIGN(const auto sweep, sweep_of(record_));
  if (sweep) {
    LOCKSTEP_TRY_ASSIGN(const auto rows, ask_slurm_rows(record_, *sweep, place_, world_));
    return explain_rows(record_, status_of_rows(rows), *sweep, records_of_rows(rows, place_));
  }
  // A job without a folder was submitted without Lockstep.
  const bool ours = !place_.folder.empty();
  LOCKSTEP_TRY_ASSIGN(Explanation said,
                      explain_slurm_job(place_.job, ours ? &record_ : nullptr, world_));
  if (!ours) return said;
  const auto now = status();
  if (!now || now->state != JobState::running) return said;
  said.advice_at = said.text.size();
  const auto answers = looks({});
  if (answers) return with_looks(std::move(said), *answers);
  said.text += fmt::format("  ranks   not known: {}\n", answers.error().message);
  return said;
}

Status SlurmJob::check_whole() const {
  if (!has_rows(record_)) return {};
  return fail(
      Errc::invalid_input, "job " + record_.id + " is a sweep on Slurm, whose ranks are not asked",
      fmt::format("lockstep why {0} tells its rows, and lockstep logs '{0}[ROW]' the output "
                  "of one",
                  record_.id));
}

Result<std::vector<std::string>> SlurmJob::ask(const std::vector<std::string>& words) {
  LOCKSTEP_TRY(check_whole());
  LOCKSTEP_TRY_ASSIGN(auto answers, ask_slurm_agents(record_, place_, words, world_));
  std::vector<std::string> texts;
  texts.reserve(answers.size());
  for (AgentText& each : answers)
    texts.push_back(std::move(each.text));
  if (!texts.empty() || words.at(0) != "events" || place_.folder.empty()) return texts;
  const std::int64_t after = parse_int(words.at(1)).value_or(0);
  for (const std::string& report : slurm::JobFolder(place_.folder).last_reports())
    if (auto answer = status::answer_of_report(report, after)) texts.push_back(std::move(*answer));
  return texts;
}

Result<std::vector<looks::Answer>> SlurmJob::looks(const looks::Question& question) {
  std::vector<std::string> words = {"looks"};
  if (std::string question_words = looks::print_question(question); !question_words.empty())
    words.push_back(std::move(question_words));
  LOCKSTEP_TRY_ASSIGN(const auto texts, ask(words));
  std::vector<looks::Answer> answers;
  add_answers(answers, texts, looks::read_answer);
  return answers;
}

// The reports are in the row's folder, whichever node wrote them.
std::vector<nlohmann::json> SlurmJob::row_reports(std::size_t row, const std::string& host) {
  (void)host;
  std::vector<nlohmann::json> reports;
  for (const std::string& text : slurm::JobFolder(place_of_row(place_, row).folder).last_reports())
    if (auto report = codec::parse_json(text, {.bytes = kMostReport}); report.is_object())
      reports.push_back(std::move(report));
  return reports;
}

// A node may run several rows, whose agents all have the job's id.
Result<std::vector<looks::Answer>> SlurmJob::row_looks(std::size_t row, const std::string& host) {
  (void)host;
  KnownJob there = record_;
  there.id += fmt::format("[{}]", row);
  LOCKSTEP_TRY_ASSIGN(const auto asked,
                      ask_slurm_agents(there, place_of_row(place_, row), {"looks"}, world_));
  std::vector<looks::Answer> answers;
  for (const AgentText& each : asked)
    add_answers(answers, {each.text}, looks::read_answer);
  return answers;
}

Result<std::vector<looks::NodeRows>> SlurmJob::ranks() {
  LOCKSTEP_TRY_ASSIGN(const auto texts, ask({"ranks"}));
  std::vector<looks::NodeRows> nodes;
  add_answers(nodes, texts, looks::read_rows);
  looks::sort_nodes(nodes);
  return nodes;
}

Result<std::vector<status::EventAnswer>> SlurmJob::events(std::int64_t after) {
  LOCKSTEP_TRY_ASSIGN(const auto texts, ask({"events", std::to_string(after)}));
  std::vector<status::EventAnswer> answers;
  add_answers(answers, texts, status::read_event_answer);
  return answers;
}

Result<ProfileAnswers> SlurmJob::profile(const ProfileRequest& request) {
  LOCKSTEP_TRY(check_whole());
  ProfileAnswers answers;
  std::string partial;
  const auto texts = ask_slurm_agents(
      record_, place_, {"profile", status::print_profile_query(request.query)}, world_, &partial);
  if (!texts) partial = texts.error().message;
  // The ranks of a node without an answer may still run.
  if (!partial.empty()) answers.silent.emplace(0, std::move(partial));
  if (!texts) return answers;
  for (const AgentText& each : *texts)
    if (auto says = status::read_profile_answer(each.text))
      answers.agents.push_back({.says = std::move(*says)});
  return answers;
}

// A network file system may show the new file of another node late.
Result<std::string> SlurmJob::find_trace(const TraceThere& trace) {
  if (!is_below(trace.folder, place_.folder) || is_no_folder(trace.folder))
    return fail(Errc::denied, "the trace is not in the folder of the job");
  for (; looks_for_traces_ > 0; --looks_for_traces_) {
    if (auto found = status::finished_trace(trace.folder, trace.profile, trace.rank))
      return std::move(*found);
    if (const int number = world_.wait_for_signal(std::chrono::seconds(1)); number != 0)
      return Failure(Error{Errc::canceled, "stopped by " + proc::signal_name(number), {}, number});
  }
  return fail(Errc::not_found, "the trace is not seen in the folder of the job");
}

Status SlurmJob::bring_trace(const TraceThere& trace, const std::string& to,
                             const std::function<Status()>& meanwhile) {
  LOCKSTEP_TRY_ASSIGN(const std::string from, find_trace(trace));
  return take_trace(from, to, meanwhile);
}

Result<std::vector<PageThere>> SlurmJob::page(int node) {
  LOCKSTEP_TRY(check_whole());
  LOCKSTEP_TRY_ASSIGN(const auto answers,
                      ask_slurm_agents(record_, place_, {"page", std::to_string(node)}, world_));
  std::vector<PageThere> found;
  for (const AgentText& each : answers) {
    auto answer = page::read_page_answer(each.text);
    if (!answer) continue;
    answer->place = each.node;
    found.push_back({.link = link_to_node(place_, each.node), .page = std::move(*answer)});
  }
  return found;
}

Result<Followed> SlurmJob::follow(const FollowOptions& options) {
  LOCKSTEP_TRY_ASSIGN(const auto sweep, sweep_of(record_));
  if (!sweep)
    return follow_slurm_job({.job = record_, .place = place_, .options = options}, world_);
  // Rows have no common output: following one prints what it writes, and following all prints how
  // many have ended.
  if (options.print && options.rank) {
    FollowOptions of_row = options;
    of_row.rank.reset();
    const auto row = static_cast<std::size_t>(*options.rank);
    return follow_slurm_job({.job = record_, .place = place_of_row(place_, row), .options = of_row},
                            world_);
  }
  if (!options.to_end)
    return fail(Errc::invalid_input, "each row of job " + record_.id + " has its own output",
                fmt::format("lockstep logs '{}[{}]' shows the output of one", record_.id,
                            sweep->rows.empty() ? 0 : sweep->rows.front()));
  return follow_slurm_rows(record_, *sweep, place_, options.print, world_);
}

// scancel returns at once. The job may still save its work, so wait for the end.
Result<JobStatus> SlurmJob::cancel() {
  const auto told = cancel_arrays(place_.jobs(), world_);
  if (!told) {
    // scancel fails for a job that has just ended. Return the end of the job then.
    auto now = status();
    if (now && now->code) return now;
    return Failure(told.error());
  }
  LOCKSTEP_TRY_ASSIGN(Followed followed, follow({.print = false}));
  if (followed.left)
    return Failure({Errc::canceled, "the end of the job was not awaited", {}, followed.signal});
  return std::move(followed.status);
}

Result<Resumed> SlurmJob::resume(const std::vector<std::string>& env) {
  LOCKSTEP_TRY_ASSIGN(const auto sweep, sweep_of(record_));
  if (sweep) return resume_slurm_rows(record_, *sweep, place_, env, world_);
  return only_slurm_resumes(place_.job);
}

}  // namespace lockstep::jobs::on_slurm
