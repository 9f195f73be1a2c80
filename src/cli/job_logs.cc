// lockstep logs, wait, resume and cancel: print a job's output, wait for the job's end, start lost
// parts again, or end the job.
#include "base/log.h"
#include "base/text.h"
#include "cli/job_json.h"
#include "cli/job_options.h"
#include "cli/subcommand.h"
#include "cli/terminal.h"
#include "codec/json.h"
#include "hosts/variables.h"
#include "io/own_folders.h"
#include "jobs/job_book.h"
#include "jobs/job_rows.h"
#include "jobs/places/find_job.h"
#include "jobs/rented/course_words.h"
#include "proc/signals.h"

#include <fmt/core.h>

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <utility>

namespace lockstep::cli {
namespace {

using jobs::JobBook;
using jobs::KnownJob;

// A word that names no job is a mistake in the command line (2). Other errors leave the job's end
// unknown (255).
constexpr ErrorCodes kFailsWith{
    .usage = ExitCode::usage, .other = ExitCode::not_reached, .missing_is_usage = true};

Result<JobBook> book() {
  return JobBook::open_to_look(io::state_folder());
}

void print(const nlohmann::ordered_json& answer) {
  std::puts(codec::print_json(answer).c_str());
}

// Returns the word that names the job, which must be the only word.
Result<std::string> one_word(const Parsed& parsed) {
  if (parsed.names.empty())
    return fail(Errc::invalid_input, "no job is named", "lockstep jobs lists the known jobs");
  if (parsed.names.size() > 1)
    return fail(Errc::invalid_input,
                fmt::format("'{}' is one word too many", printable(parsed.names[1])));
  return parsed.names.front();
}

// Finds the job, ended or not.
Result<KnownJob> one_job(const JobBook& known, const Parsed& parsed) {
  LOCKSTEP_TRY_ASSIGN(const std::string word, one_word(parsed));
  return jobs::places::find_job(known, word);
}

// Finds the job. Of several jobs with the name, a running job counts before a newer, ended job.
Result<KnownJob> job_going_on(const JobBook& known, const Parsed& parsed,
                              jobs::places::Several several) {
  LOCKSTEP_TRY_ASSIGN(const std::string word, one_word(parsed));
  return jobs::places::find_running_job(known, word, several);
}

// Follows the job and returns this command's exit code: the job's, 128 + N after signal N, or 255
// if no host knows the job's code. tell: print the job's end as JSON.
// notes: record the end, which is that of the whole job.
Result<ExitCode> follow(const JobBook& known, KnownJob record, const jobs::FollowOptions& options,
                        bool tell, bool notes = true) {
  const auto job = jobs::places::open_job(std::move(record));
  LOCKSTEP_TRY_ASSIGN(const jobs::Followed followed, job->follow(options));
  if (followed.left) return stopped_by(followed.signal);
  if (!options.to_end && followed.missing.empty()) return ExitCode::ok;
  if (!options.to_end)
    return fail(Errc::unavailable,
                "not reached, so the output is missing: " + join(followed.missing, ", "));
  if (tell) print(job_json(*job, followed.status));
  // Record the end: `lockstep jobs` asks hosts only about jobs without a recorded end.
  if (notes) LOCKSTEP_TRY(known.note(job->record().id, followed.status));
  if (followed.status.code) return passed_on(*followed.status.code);
  log::warning("job {}: the result is not known", job->record().id);
  return ExitCode::not_reached;
}

// Prints the log of a job's course, for a rented job whose machines cannot be asked. The log has no
// lines by rank or as JSON, so both are refused.
Result<ExitCode> print_words(const jobs::rented::CourseWords& said, const LogsOptions& options) {
  if (options.json || options.rank)
    return fail(Errc::invalid_input,
                fmt::format("--{} needs the job's machines, which are not there now",
                            options.json ? "json" : "rank"),
                "leave the option out: the log of the job's course is " + said.path);
  std::fwrite(said.text.data(), 1, said.text.size(), stdout);
  if (options.follow && said.goes_on && !said.awaited)
    log::warning("the job's machines are not there now: later output is not awaited; {}",
                 said.path);
  return ExitCode::ok;
}

Result<ExitCode> print_logs(const Call& call) {
  LogsOptions options;
  fill(logs_table(), call.parsed, options);
  if (options.lines && *options.lines < 0)
    return fail(Errc::invalid_input, "-n must be a number of lines");
  LOCKSTEP_TRY_ASSIGN(const JobBook known, book());
  std::optional<jobs::places::RowOfJob> of_row;
  if (call.parsed.names.size() == 1) {
    LOCKSTEP_TRY_ASSIGN(of_row,
                        jobs::places::find_row_of_job(known, call.parsed.names.front(), "logs"));
  }
  if (of_row) {
    if (options.rank) return fail(Errc::invalid_input, "--rank and a row exclude each other");
    return follow(known, std::move(of_row->job),
                  {.to_end = options.follow,
                   .json = options.json,
                   .lines = options.lines,
                   .rank = static_cast<std::int64_t>(of_row->row)},
                  false, false);
  }
  // The word may also name a rented cluster. The log of its course may exist even if the book knows
  // no such job, so look at the error of one_job() last.
  auto found = one_job(known, call.parsed);
  if (call.parsed.names.size() == 1)
    if (const auto said =
            jobs::rented::words_of_course(call.parsed.names.front(), found, options.lines)) {
      LOCKSTEP_TRY_ASSIGN(const ExitCode code, print_words(*said, options));
      if (!options.follow || !said->awaited) return code;
      options.lines.reset();  // the next attempt shows all
    }
  if (!found) return Failure(std::move(found).error());
  // The rows of a sweep are not ranks, and each of them may have several.
  if (options.rank && jobs::has_rows(*found))
    return fail(
        Errc::invalid_input, "job " + found->id + " is a sweep, whose lines have rows and no ranks",
        fmt::format("lockstep logs '{}[{}]' shows the output of a row", found->id, *options.rank));
  return follow(known, std::move(*found),
                {.to_end = options.follow,
                 .json = options.json,
                 .fold = folds(options.fold),
                 .lines = options.lines,
                 .rank = options.rank},
                false);
}

Result<ExitCode> wait_for_job(const Call& call) {
  EndingOptions options;
  fill(wait_table(), call.parsed, options);
  LOCKSTEP_TRY_ASSIGN(const JobBook known, book());
  LOCKSTEP_TRY_ASSIGN(KnownJob job,
                      job_going_on(known, call.parsed, jobs::places::Several::newest));
  return follow(known, std::move(job), {.print = false}, options.json);
}

// Returns whether every host of the job has answered.
bool all_told(const jobs::JobStatus& status) {
  return std::all_of(status.nodes.begin(), status.nodes.end(),
                     [](const jobs::NodeStatus& node) { return node.state.has_value(); });
}

Result<ExitCode> cancel_job(const Call& call) {
  EndingOptions options;
  fill(cancel_table(), call.parsed, options);
  LOCKSTEP_TRY_ASSIGN(const JobBook known, book());
  // With several running jobs of that name, cancel must not guess.
  LOCKSTEP_TRY_ASSIGN(KnownJob record,
                      job_going_on(known, call.parsed, jobs::places::Several::refuse));
  const auto job = jobs::places::open_job(std::move(record));
  LOCKSTEP_TRY_ASSIGN(const jobs::JobStatus status, job->cancel());
  // A host that did not answer may still run the job. Record an end only if all hosts have
  // answered, or if the job's exit code is known.
  if (all_told(status) || status.code) LOCKSTEP_TRY(known.note(job->record().id, status));
  if (options.json)
    print(job_json(*job, status));
  else
    std::puts(fmt::format("{}: {}", job->id_for_people(), state_name(status.state)).c_str());
  return all_told(status) ? ExitCode::ok : ExitCode::not_reached;
}

Result<ExitCode> resume_job(const Call& call) {
  LOCKSTEP_TRY_ASSIGN(const JobBook known, book());
  LOCKSTEP_TRY_ASSIGN(KnownJob record, one_job(known, call.parsed));
  // The job's secrets are kept nowhere, so the user gives them again.
  const ResumeOptions options = resume_options(call.parsed);
  LOCKSTEP_TRY_ASSIGN(const auto env, hosts::variables_of({.env = options.variables.env,
                                                           .files = options.variables.env_files,
                                                           .secrets = options.variables.secrets},
                                                          hosts::own_variable));
  const auto job = jobs::places::open_job(std::move(record));
  LOCKSTEP_TRY_ASSIGN(const jobs::Resumed resumed, job->resume(env));
  const std::string& id = job->record().id;
  LOCKSTEP_TRY(known.note(id, jobs::started_state(resumed.ahead)));
  if (options.json)
    print(started_json(id, resumed.nodes, resumed.ahead));
  else
    std::printf("%s: %s on %s\n", id.c_str(), resumed.ahead.empty() ? "runs again" : "is queued",
                join(resumed.nodes, ", ").c_str());
  return ExitCode::ok;
}

}  // namespace

extern constinit const Subcommand kLogs{.name = "logs",
                                        .summary = "print the output of a job",
                                        .table = logs_table,
                                        .run = print_logs,
                                        .signals = Signals::blocked,
                                        .fails_with = kFailsWith};
extern constinit const Subcommand kWait{.name = "wait",
                                        .summary = "wait until a job has ended",
                                        .table = wait_table,
                                        .run = wait_for_job,
                                        .signals = Signals::blocked,
                                        .fails_with = kFailsWith};
extern constinit const Subcommand kResume{.name = "resume",
                                          .summary = "start lost parts of a job again",
                                          .table = resume_table,
                                          .run = resume_job,
                                          .signals = Signals::blocked,
                                          .fails_with = kFailsWith};
extern constinit const Subcommand kCancel{.name = "cancel",
                                          .summary = "end a job",
                                          .table = cancel_table,
                                          .run = cancel_job,
                                          .signals = Signals::blocked,
                                          .fails_with = kFailsWith};

}  // namespace lockstep::cli
