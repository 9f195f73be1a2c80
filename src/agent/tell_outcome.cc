// Prints and writes the outcome of a job.
#include "agent/tell_outcome.h"

#include "agent/error_file.h"
#include "agent/past_run_file.h"
#include "agent/report_json.h"
#include "base/log.h"
#include "io/replace_file.h"
#include "proc/signals.h"

#include <fmt/core.h>

#include <unistd.h>

#include <cmath>
#include <string>

namespace lockstep::agent {
namespace {

std::string variable(const Environment& environment, const char* name) {
  const auto found = environment.find(name);
  return found == environment.end() ? std::string() : found->second;
}

// Returns whether to use colour: on a terminal, unless NO_COLOR (no-color.org) or TERM=dumb says
// otherwise.
bool shows_colour(int fd, const Environment& environment) {
  return isatty(fd) == 1 && variable(environment, "NO_COLOR").empty() &&
         variable(environment, "TERM") != "dumb";
}

void print_failures(const FailureReport& report, const TellingPlaces& places) {
  if (places.config.report_tails == launch::ReportTails::none) return;
  if (report.failures.empty() && root_event(report) == nullptr) return;
  const std::string title = root_cause(report) ? std::string(kChildFailedError) + "\n" : "";
  ReportStyle style;
  style.all = places.config.report_tails == launch::ReportTails::all;
  style.colour = shows_colour(places.console.fd(logs::Stream::err), places.environment);
  places.console.write(logs::Stream::err, title + format_report(report, style) + "\n");
}

// Copies the root cause to the error file of a launcher that started this one as its worker.
void copy_error_file(const FailureReport& own, const std::optional<std::string>& above) {
  const auto root = root_cause(own);
  if (!above || !root || !own.failures[*root].error) return;
  const WorkerFailure& failure = own.failures[*root];
  if (const Status written =
          write_error_file(*above, with_error_code(*failure.error, failure.exit_code));
      !written)
    log::error("{}", written.error().message);
}

// Notes this run for the next one of the same command. Returns the words about the last run. Only
// the first node of the job notes runs: nodes of one machine would overwrite each other's.
std::string compare_with_last_run(const JobHistory& history, const std::string& outcome,
                                  const TellingPlaces& places) {
  if (history.attempts().back().start.group_rank != 0) return {};
  PastRun run{.key = past_run_key(places.config),
              .outcome = outcome,
              .ended_ms = history.end_ms(),
              .duration_ms = history.duration_ms(),
              .restarts = history.restarts()};
  if (!status::goodput_words(places.goodput).empty())
    run.goodput = static_cast<int>(std::lround(100 * places.goodput.share()));
  const auto last = note_past_run(run);
  return last ? past_run_words(*last, run.ended_ms) : "";
}

void say_last_line(const JobHistory& history, const std::string& outcome,
                   const TellingPlaces& places) {
  if (!is_worth_a_line(history)) return;
  // Without these options no output is kept: say how to keep some.
  const auto given = [](const logs::StdSpec& spec) {
    return spec.every != logs::Std::none || !spec.by_rank.empty();
  };
  std::string logs = "none (--log-dir /dev/null)";
  if (places.run_dir != nullptr) {
    // A folder of Lockstep's choice goes away if it is empty, so do not name it.
    const bool stays = places.config.logs.base_dir || places.run_dir->has_files();
    const bool keeps_output = given(places.config.logs.redirects) || given(places.config.logs.tee);
    logs = stays ? places.run_dir->path() : "none";
    if (!keeps_output)
      logs += fmt::format(" ({}-r 3 or -t 3 keeps output)", stays ? "error files only; " : "");
  }
  log::warning("{}", last_line(history, outcome, logs, status::goodput_words(places.goodput),
                               straggler_line(places.straggler),
                               compare_with_last_run(history, outcome, places)));
}

void say_why(const JobEnd& end, const FailureReport& own, const FailureReport& whole,
             const JobHistory& history, const TellingPlaces& places) {
  switch (end.outcome) {
    case Outcome::stuck:
      log::error("this node leaves the job: a worker survives SIGKILL; the other nodes may go on");
      return print_failures(whole, places);
    case Outcome::peer_failed:
      log::error("the job has failed: {}", end.why_stopped);
      [[fallthrough]];
    case Outcome::failed:
      copy_error_file(own, places.config.error_file_above);
      return print_failures(whole, places);
    case Outcome::signaled:
      // The usual story: a worker crashes, the peers hang in their collective, the scheduler sends
      // TERM. Report the crash, too.
      if (root_cause(whole)) print_failures(whole, places);
      return log::error("ended by {}; all workers are stopped", proc::signal_name(end.signal));
    case Outcome::spawn_failed:
      return log::error("{}", whole.event);
    case Outcome::no_rendezvous:
      // Without any attempt, this error ends the program, and main prints it.
      if (history.attempts_total() > 0) log::error("{}", whole.event);
      return;
    case Outcome::succeeded:
    case Outcome::spare:
    case Outcome::signaled_early:
      return;
  }
}

}  // namespace

std::string outcome_line(const FailureReport& whole, const JobHistory& history) {
  std::string line = how_it_ended(history, whole.outcome);
  const auto root = root_cause(whole);
  const std::string* event = root_event(whole);
  if (root) line += ": " + failure_line(whole.failures[*root]);
  if (event != nullptr && !event->empty()) line += ": " + *event;
  return line;
}

void tell_outcome(const JobEnd& end, const FailureReport& own, const FailureReport& whole,
                  const JobHistory& history, const TellingPlaces& places) {
  const launch::LaunchConfig& config = places.config;
  say_why(end, own, whole, history, places);
  say_last_line(history, whole.outcome, places);
  if (!config.report_file) return;
  const JobFacts facts{end.node,
                       places.run_dir != nullptr ? places.run_dir->path() : "",
                       config.max_restarts,
                       places.goodput,
                       places.straggler,
                       places.events};
  const Status written = io::replace_file(*config.report_file, report_json(whole, history, facts));
  if (!written) log::error("--report: {}", written.error().message);
}

}  // namespace lockstep::agent
