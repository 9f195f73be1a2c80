// lockstep logs, wait, resume and cancel: what becomes of a job that runs on hosts.
#include "base/log.h"
#include "base/text.h"
#include "cli/date_text.h"
#include "cli/follow_log.h"
#include "cli/job_json.h"
#include "cli/job_options.h"
#include "cli/subcommand.h"
#include "cli/terminal.h"
#include "codec/json.h"
#include "hosts/command_run.h"
#include "hosts/variables.h"
#include "io/own_folders.h"
#include "jobs/job_book.h"
#include "jobs/on_hosts/job_follow.h"
#include "jobs/on_hosts/job_plan.h"
#include "jobs/on_hosts/job_start.h"
#include "jobs/on_slurm/slurm_follow.h"
#include "jobs/places/job_refresh.h"
#include "proc/signals.h"

#include <fmt/core.h>

#include <signal.h>
#include <unistd.h>

#include <cstdio>
#include <utility>

namespace lockstep::cli {
namespace {

using jobs::JobBook;
using jobs::KnownJob;

constexpr int kBadInput = 2;
constexpr int kFailed = 255;

int refuse(std::string_view program, const Error& error) {
  print_error(program, error);
  const bool users = error.code == Errc::invalid_input || error.code == Errc::not_found;
  return users ? kBadInput : kFailed;
}

Result<JobBook> book() {
  return JobBook::open(io::state_folder());
}

void print(const nlohmann::ordered_json& answer) {
  std::puts(codec::print_json(answer).c_str());
}

Result<KnownJob> one_job(const JobBook& known, const Parsed& parsed) {
  if (parsed.names.empty())
    return fail(Errc::invalid_input, "no job is named", "lockstep jobs lists those that there are");
  if (parsed.names.size() > 1)
    return fail(Errc::invalid_input,
                fmt::format("'{}' is one word too many", printable(parsed.names[1])));
  auto job = jobs::on_slurm::find_job(known, parsed.names.front());
  // A job of Slurm's that somebody else has submitted.
  if (!job && job.error().code == Errc::not_found && slurm::is_job_id(parsed.names.front()))
    return jobs::on_slurm::find_slurm_job(parsed.names.front());
  return job;
}

// The rule for a name that several running jobs have: take the newest, or refuse the name.
enum class Several { newest, refuse };

// Returns the running job of a name, even if a newer job of that name has ended.
Result<KnownJob> job_going_on(const JobBook& known, const Parsed& parsed, Several several) {
  LOCKSTEP_TRY_ASSIGN(KnownJob newest, one_job(known, parsed));
  const std::string& word = parsed.names.front();
  if (newest.id == word || newest.name != word) return newest;
  LOCKSTEP_TRY_ASSIGN(auto jobs, known.going_on(word));
  const bool newest_alone = jobs.size() == 1 && jobs.front().id == newest.id;
  if (!newest_alone) LOCKSTEP_TRY(jobs::places::refresh_jobs(known, jobs));
  std::erase_if(jobs, [](const KnownJob& job) { return job.is_over(); });
  if (jobs.empty()) return newest;
  if (jobs.size() == 1) return std::move(jobs.front());
  if (several == Several::newest && jobs.front().id == newest.id) return newest;
  std::vector<std::string> ids;
  for (const KnownJob& job : jobs)
    ids.push_back(fmt::format("{} ({} on {}, {})", job.id, job::stage_name(job.stage), job.place,
                              date_text(job.created_ms)));
  return fail(
      Errc::invalid_input,
      fmt::format("{} jobs are named {}: {}", jobs.size(), printable(word), join(ids, ", ")),
      "name one by its id");
}

// The code of this command for a job of Slurm's that was followed.
Result<int> told_ending(const JobBook& known, const KnownJob& job,
                        const jobs::on_slurm::SlurmEnding& ending, bool tell) {
  LOCKSTEP_TRY(known.note(job.id, ending.stage, ending.code, ending.ended_ms));
  if (tell) print(slurm_job_json(job, ending));
  if (ending.left) return 128 + ending.signal;
  if (ending.stage == job::Stage::ended) return ending.code;
  if (ending.stage == job::Stage::lost)
    log::warning("job {}: Slurm does not know (any more) how it ended", job.id);
  return kFailed;
}

void take_signals() {
  proc::block(proc::handled_signals());
  signal(SIGCHLD, SIG_DFL);
}

// The code of this command where the job was followed to its end. tell: how it ended, as JSON.
Result<int> follow_to_end(const JobBook& known, const jobs::on_hosts::FollowRequest& request,
                          bool tell) {
  LOCKSTEP_TRY_ASSIGN(const jobs::on_hosts::JobOutcome outcome,
                      jobs::on_hosts::follow_job(request));
  if (outcome.left) return 128 + outcome.signal;
  if (!request.to_end && outcome.missing.empty()) return 0;
  if (!request.to_end)
    return fail(Errc::unavailable,
                "not reached, so what it has said is missing: " + join(outcome.missing, ", "));
  if (tell) print(job_json(request.job, outcome.nodes));
  const jobs::JobEnding ending = jobs::ending_of(outcome.nodes);
  LOCKSTEP_TRY(jobs::note_ending(known, request.job.id, ending));
  if (ending.code) return *ending.code;
  log::warning("job {}: no host knows how it ended", request.job.id);
  return kFailed;
}

// Of a job whose machines are gone there is the one text that its follower has written.
Result<int> print_words(const FollowerWords& said, const LogsOptions& options) {
  if (options.json || options.rank)
    return fail(Errc::invalid_input,
                fmt::format("--{} is of lines as their hosts tell them, and its machines are not "
                            "there now",
                            options.json ? "json" : "rank"),
                "leave it out: what its follower has written is in " + said.path);
  std::fwrite(said.text.data(), 1, said.text.size(), stdout);
  if (options.follow && said.goes_on)
    log::warning("its machines are not there now: what comes later is not waited for; {}",
                 said.path);
  return 0;
}

Result<int> print_logs(const Call& call) {
  LogsOptions options;
  fill(logs_table(), call.parsed, options);
  if (options.lines && *options.lines < 0)
    return fail(Errc::invalid_input, "-n is a number of lines");
  LOCKSTEP_TRY_ASSIGN(const JobBook known, book());
  auto found = one_job(known, call.parsed);
  if (call.parsed.names.size() == 1)
    if (const auto said = told_by_follower(call.parsed.names.front(), found, options.lines))
      return print_words(*said, options);
  if (!found) return Failure(std::move(found).error());
  KnownJob job = std::move(*found);
  if (const auto place = jobs::on_slurm::slurm_place_here(job)) {
    LOCKSTEP_TRY_ASSIGN(const auto ending,
                        jobs::on_slurm::follow_slurm_job({.job = job,
                                                          .place = *place,
                                                          .to_end = options.follow,
                                                          .json = options.json,
                                                          .fold = folds(options.fold),
                                                          .lines = options.lines,
                                                          .rank = options.rank}));
    return options.follow ? told_ending(known, job, ending, false) : Result<int>(0);
  }
  return follow_to_end(known,
                       {.job = std::move(job),
                        .to_end = options.follow,
                        .json = options.json,
                        .fold = folds(options.fold),
                        .lines = options.lines,
                        .rank = options.rank},
                       false);
}

Result<int> wait_for_job(const Call& call) {
  EndingOptions options;
  fill(wait_table(), call.parsed, options);
  LOCKSTEP_TRY_ASSIGN(const JobBook known, book());
  LOCKSTEP_TRY_ASSIGN(KnownJob job, job_going_on(known, call.parsed, Several::newest));
  if (const auto place = jobs::on_slurm::slurm_place_here(job)) {
    LOCKSTEP_TRY_ASSIGN(const auto ending, jobs::on_slurm::follow_slurm_job(
                                               {.job = job, .place = *place, .print = false}));
    return told_ending(known, job, ending, options.json);
  }
  return follow_to_end(known, {.job = std::move(job), .print = false}, options.json);
}

Result<int> cancel_job(const Call& call) {
  EndingOptions options;
  fill(cancel_table(), call.parsed, options);
  LOCKSTEP_TRY_ASSIGN(const JobBook known, book());
  LOCKSTEP_TRY_ASSIGN(const KnownJob job, job_going_on(known, call.parsed, Several::refuse));
  if (const auto place = jobs::on_slurm::slurm_place_here(job)) {
    LOCKSTEP_TRY_ASSIGN(const auto ending, jobs::on_slurm::cancel_slurm_job(job, *place));
    LOCKSTEP_TRY_ASSIGN(const int ignored, told_ending(known, job, ending, options.json));
    (void)ignored;
    if (!options.json) std::printf("%s: %s\n", place->job.c_str(), ending.words.c_str());
    return 0;
  }
  LOCKSTEP_TRY_ASSIGN(const auto endings,
                      hosts::run_command({.hosts = job.nodes,
                                          .argv = {"host-job", "cancel", job.id},
                                          .own_binary = true,
                                          .input = hosts::CommandRequest::Input::none,
                                          .output = hosts::CommandRequest::Output::keep}));
  std::vector<std::optional<job::JobRecord>> nodes;
  bool all_told = true;
  for (std::size_t i = 0; i < endings.size(); ++i) {
    nodes.emplace_back();
    const nlohmann::json answer = codec::parse_json(endings[i].out);
    if (answer.is_array() && answer.size() == 1)
      if (auto record = job::record_from_json(answer[0])) nodes.back() = std::move(*record);
    if (nodes.back()) continue;
    all_told = false;
    log::warning("{}", endings[i].error.empty() ? job.nodes[i].name + ": it knows no such job"
                                                : endings[i].error);
  }
  const jobs::JobEnding ending = jobs::ending_of(nodes);
  if (all_told || ending.stage == job::Stage::ended)
    LOCKSTEP_TRY(jobs::note_ending(known, job.id, ending));
  if (options.json) {
    print(job_json(job, nodes));
  } else {
    std::printf("%s: %s\n", job.id.c_str(),
                ending.canceled ? "canceled" : std::string(job::stage_name(ending.stage)).c_str());
  }
  return all_told ? 0 : kFailed;
}

Result<int> resume_job(const Call& call) {
  LOCKSTEP_TRY_ASSIGN(const JobBook known, book());
  LOCKSTEP_TRY_ASSIGN(const KnownJob job, one_job(known, call.parsed));
  if (const auto place = jobs::on_slurm::slurm_place(job))
    return fail(Errc::invalid_input, "a job of Slurm's is resumed by Slurm",
                "scontrol requeue " + place->job + ", or submit it again");
  const ResumeOptions options = resume_options(call.parsed);
  LOCKSTEP_TRY_ASSIGN(const auto env, hosts::variables_of({.env = options.variables.env,
                                                           .files = options.variables.env_files,
                                                           .secrets = options.variables.secrets},
                                                          hosts::own_variable));
  LOCKSTEP_TRY_ASSIGN(const auto records, jobs::ask_status(job));
  std::vector<int> lost;
  std::vector<std::string> names;
  for (std::size_t i = 0; i < records.size(); ++i) {
    if (records[i] && records[i]->state.stage != job::Stage::lost) continue;
    lost.push_back(static_cast<int>(i));
    names.push_back(job.nodes[i].name);
  }
  if (lost.empty())
    return fail(Errc::invalid_input, "nothing of job " + job.id + " is lost",
                "lockstep jobs shows how it stands");
  LOCKSTEP_TRY_ASSIGN(const auto request, jobs::on_hosts::resumed_request(job, lost, env));
  LOCKSTEP_TRY_ASSIGN(const auto started, jobs::on_hosts::start_job(request));
  LOCKSTEP_TRY(known.note(job.id, job::Stage::running, 0, 0));
  const bool waits = !started.ahead.empty();
  if (options.json)
    print(started_json(job.id, names, started.ahead));
  else
    std::printf("%s: %s on %s\n", job.id.c_str(), waits ? "is queued" : "runs again",
                join(names, ", ").c_str());
  return 0;
}

template <Result<int> (*act)(const Call&), const Table& (*table)()>
int carry_out(const Call& call) {
  take_signals();
  const auto code = act(call);
  return code ? *code : refuse(table().program, code.error());
}

}  // namespace

extern constinit const Subcommand kLogs{.name = "logs",
                                        .summary = "what a job on hosts has said",
                                        .table = logs_table,
                                        .run = carry_out<print_logs, logs_table>};
extern constinit const Subcommand kWait{.name = "wait",
                                        .summary = "wait until a job on hosts has ended",
                                        .table = wait_table,
                                        .run = carry_out<wait_for_job, wait_table>};
extern constinit const Subcommand kResume{.name = "resume",
                                          .summary = "start lost parts of a job again",
                                          .table = resume_table,
                                          .run = carry_out<resume_job, resume_table>};
extern constinit const Subcommand kCancel{.name = "cancel",
                                          .summary = "end a job on hosts",
                                          .table = cancel_table,
                                          .run = carry_out<cancel_job, cancel_table>};

}  // namespace lockstep::cli
