// NodeAgent, the end: nothing left behind, everything said, one exit code.
#include "agent/clock_ms.h"
#include "agent/node_agent.h"
#include "agent/report_json.h"
#include "base/log.h"
#include "base/text.h"
#include "io/replace_file.h"
#include "proc/signals.h"

#include <fmt/core.h>

#include <signal.h>
#include <unistd.h>

#include <algorithm>

namespace lockstep::agent {
namespace {
// Helpers that outlive their worker (a logger that uploads its last lines) may finish; the rest is
// ended.
constexpr std::chrono::milliseconds kLeftoverGrace{2000};
constexpr std::chrono::seconds kSweepLimit{10};
// Of that, how long the loop may stand still: heartbeats go on meanwhile.
constexpr std::chrono::milliseconds kSweepTurn{50};
constexpr std::chrono::milliseconds kSweepPause{20};
constexpr std::chrono::milliseconds kStagePause{2};

const char* outcome_word(Outcome outcome) {
  switch (outcome) {
    case Outcome::succeeded:
      return "succeeded";
    case Outcome::spare:
      return "spare";
    case Outcome::failed:
    case Outcome::peer_failed:
      return "failed";
    case Outcome::no_rendezvous:
      return "no_rendezvous";
    case Outcome::signaled:
    case Outcome::signaled_early:
      return "interrupted";
    case Outcome::spawn_failed:
      return "not_started";
  }
  return "failed";
}
}  // namespace

// The stages of the end run on the loop: output is still read, a TERM or INT still heard, and the
// guardian's death still seen.
void NodeAgent::begin_conclusion() {
  const std::vector<pid_t> left = containment_.leftovers();
  left_behind_ = left.size();
  if (left.empty()) return await_reports();
  if (group_.outcome() == Outcome::succeeded)
    for (const pid_t pid : left)
      kill(pid, SIGTERM);
  else
    hurry_ = true;
  stage_deadline_ =
      io::Clock::now() + std::min<io::Duration>(kLeftoverGrace, config_.shutdown_timeout);
  await_leftovers();
}

void NodeAgent::await_leftovers() {
  if (!hurry_ && !no_patience_ && io::Clock::now() < stage_deadline_ &&
      !containment_.leftovers().empty())
    return next_stage(&NodeAgent::await_leftovers, kStagePause);
  sweep_leftovers(&NodeAgent::leftovers_ended);
}

void NodeAgent::leftovers_ended() {
  log::info("workers left {} processes behind; they were ended", left_behind_);
  hurry_ = false;
  await_reports();
}

// Before this node takes leave: a host may have to wait for others that are frozen.
void NodeAgent::tell_outcome() {
  if (group_.abandoned()) name_the_unkillable();
  for (Worker& worker : workers_) {
    if (worker.capture) worker.capture->drain_now();
    worker.capture.reset();
  }
  report(outcome_word(group_.outcome()));
}

void NodeAgent::finish_output() {
  remove_unused_logs();
  rendezvous_.reset();
  store_.reset();
  health_server_.reset();
  containment_.end();
  stage_deadline_ =
      io::Clock::now() + std::max<io::Duration>(config_.shutdown_timeout, std::chrono::seconds(1));
  await_console();
}

void NodeAgent::await_console() {
  const bool written =
      console_.pending(logs::Stream::out) == 0 && console_.pending(logs::Stream::err) == 0;
  if (written || hurry_ || no_patience_ || io::Clock::now() >= stage_deadline_) return loop_.stop();
  next_stage(&NodeAgent::await_console, kStagePause);
}

void NodeAgent::next_stage(void (NodeAgent::*stage)(), io::Duration after) {
  stage_ = stage;
  stage_timer_.start(after, [this] { (this->*stage_)(); });
}

void NodeAgent::hurry() {
  hurry_ = true;
  if (stage_ != nullptr) next_stage(stage_, io::Duration::zero());
}

// Ends what workers left behind; names what even SIGKILL can't end, and goes on.
void NodeAgent::sweep_leftovers(void (NodeAgent::*then)()) {
  after_sweep_ = then;
  stage_deadline_ = io::Clock::now() + kSweepLimit;
  sweep_on();
}

void NodeAgent::sweep_on() {
  const proc::Sweep sweep = containment_.sweep(kSweepTurn);
  const bool patient = !no_patience_ && io::Clock::now() < stage_deadline_;
  if (!sweep.unkillable.empty() && patient) return next_stage(&NodeAgent::sweep_on, kSweepPause);
  for (const pid_t pid : sweep.unkillable)
    log::error("process {} ({}) can't be killed: it is {}", pid, proc::command_of(pid),
               what_holds("/proc", pid));
  (this->*after_sweep_)();
}

// Not one worker ever ran: bad input leaves no directory behind. Neither does a job that wrote no
// file, where the directory is of our choice.
void NodeAgent::remove_unused_logs() const {
  const bool ran = std::any_of(workers_.begin(), workers_.end(),
                               [](const Worker& w) { return w.child.has_value(); });
  if (!run_dir_) return;
  if (!ran && attempts_ <= 1) return run_dir_->remove_unused();
  if (!config_.logs.base_dir) run_dir_->remove_empty();
}

void NodeAgent::name_the_unkillable() const {
  for (const Worker& worker : workers_) {
    if (!worker.child || !worker.child->alive()) continue;
    const pid_t pid = worker.child->pid();
    log::error("process {} did not exit after SIGKILL (it is {}); it was abandoned", pid,
               what_holds("/proc", pid));
  }
}

void NodeAgent::report(const std::string& outcome) {
  history_.job_ended(unix_ms());
  const FailureReport report = job_report(outcome);
  switch (group_.outcome()) {
    case Outcome::peer_failed:
      log::error("the job has failed: {}", why_stopped_);
      [[fallthrough]];
    case Outcome::failed:
      copy_error_file_to_parent();
      print_failures(report);
      break;
    case Outcome::signaled:
      // A crash, peers that hang in their collective, the scheduler's TERM: the crash is the story.
      if (root_cause(report)) print_failures(report);
      log::error("ended by {}; all workers are stopped", proc::signal_name(ending_signal()));
      break;
    case Outcome::spawn_failed:
      log::error("{}", report.event);
      break;
    case Outcome::no_rendezvous:
      if (attempts_ > 0) log::error("{}", report.event);
      break;
    case Outcome::succeeded:
    case Outcome::spare:
    case Outcome::signaled_early:
      break;
  }
  say_last_line(outcome);
  if (!config_.report_file) return;
  const JobFacts facts{node_name_, run_dir_ ? run_dir_->path() : "", config_.max_restarts};
  const Status written =
      io::replace_file(*config_.report_file, report_json(report, history_, facts));
  if (!written) log::error("--report: {}", written.error().message);
}

void NodeAgent::say_last_line(const std::string& outcome) const {
  if (!is_worth_a_line(history_)) return;
  const auto given = [](const logs::StdSpec& spec) {
    return spec.every != logs::Std::none || !spec.by_rank.empty();
  };
  std::string place = "none (--log-dir /dev/null)";
  if (run_dir_) {
    place = run_dir_->path();
    if (!given(config_.logs.redirects) && !given(config_.logs.tee))
      place += " (error files only; -r 3 or -t 3 keeps output)";
  }
  log::warning("{}", last_line(history_, outcome, place));
}

FailureReport NodeAgent::job_report(const std::string& outcome) const {
  FailureReport report;
  report.title = config_.entrypoint;
  report.run_id = config_.run_id;
  report.outcome = outcome;
  if (group_.outcome() == Outcome::succeeded || group_.outcome() == Outcome::spare) return report;
  report.event = ending_event();
  // The job ended because there was no next attempt, whatever the last one came to.
  report.event_counts =
      group_.outcome() == Outcome::spawn_failed || group_.outcome() == Outcome::no_rendezvous;
  if (reports_.empty()) {
    report.failures = failures_;
    report.stop_sent_ms = stop_sent_ms_;  // of this node's clock, as they are
    return report;
  }
  for (const rendezvous::NodeReport& node : reports_) {
    auto failures = parse_failures(node.text);
    if (!failures) {
      log::warning("the failures that {} reports make no sense: {}", printable(node.host),
                   failures.error().message);
      continue;
    }
    std::move(failures->begin(), failures->end(), std::back_inserter(report.failures));
    if (!report.root_among && !report.failures.empty()) report.root_among = report.failures.size();
  }
  return report;
}

// What ended the job other than a worker's failure.
std::string NodeAgent::ending_event() const {
  const auto whole = [](const Error& error) {
    return error.message + (error.hint.empty() ? "" : "; " + error.hint);
  };
  switch (group_.outcome()) {
    case Outcome::signaled:
    case Outcome::signaled_early:
      return fmt::format("{} was ended by {}", node_name_, proc::signal_name(ending_signal()));
    case Outcome::spawn_failed:
      return "workers could not be started: " + whole(*start_error_);
    case Outcome::no_rendezvous:
      return whole(*rendezvous_error_);
    case Outcome::succeeded:
    case Outcome::spare:
      return {};
    case Outcome::failed:
    case Outcome::peer_failed:
      break;
  }
  return why_stopped_;
}

void NodeAgent::print_failures(const FailureReport& report) {
  if (report.failures.empty() && root_event(report) == nullptr) return;
  const std::string title = root_cause(report) ? std::string(kChildFailedError) + "\n" : "";
  ReportStyle style;
  style.all = config_.report_tails == launch::ReportTails::all;
  style.colour = shows_colour(console_.fd(logs::Stream::err));
  console_.write(logs::Stream::err, title + format_report(report, style) + "\n");
}

// On a terminal, unless the user or the terminal wants none (no-color.org).
bool NodeAgent::shows_colour(int fd) const {
  const auto value = [this](const char* name) {
    const auto found = environment_.find(name);
    return found == environment_.end() ? std::string() : found->second;
  };
  return isatty(fd) == 1 && value("NO_COLOR").empty() && value("TERM") != "dumb";
}

int NodeAgent::ending_signal() const {
  return unlisted_signal_ != 0 ? unlisted_signal_ : group_.signal();
}

void NodeAgent::copy_error_file_to_parent() const {
  const auto parent = environment_.find("TORCHELASTIC_ERROR_FILE");
  if (parent == environment_.end() || parent->second.empty()) return;
  FailureReport all;
  all.failures = failures_;
  all.stop_sent_ms = stop_sent_ms_;
  all.event = ending_event();
  const auto root = root_cause(all);
  if (!root || !failures_[*root].error) return;
  const WorkerFailure& failure = failures_[*root];
  if (const Status written =
          write_error_file(parent->second, with_error_code(*failure.error, failure.exit_code));
      !written)
    log::error("{}", written.error().message);
}

int NodeAgent::exit_code() const {
  switch (group_.outcome()) {
    case Outcome::succeeded:
    case Outcome::spare:
      return 0;
    case Outcome::signaled_early:
      return 128 + ending_signal();
    case Outcome::signaled:
      return unlisted_signal_ != 0 ? 128 + unlisted_signal_ : 1;
    case Outcome::spawn_failed:
    case Outcome::no_rendezvous:
      return 1;
    case Outcome::failed:
    case Outcome::peer_failed:
      break;
  }
  if (config_.exit_code != launch::ExitCodeMode::worker) return 1;
  const FailureReport all = job_report("failed");
  const auto root = root_cause(all);
  if (!root) return 1;
  const int code = all.failures[*root].exit_code;
  return code < 0 ? 128 - code : code;
}

}  // namespace lockstep::agent
