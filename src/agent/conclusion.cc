// NodeAgent, the end: nothing left behind, everything said, one exit code.
#include "agent/clock_ms.h"
#include "agent/node_agent.h"
#include "base/log.h"
#include "base/text.h"
#include "io/fd.h"
#include "proc/signals.h"

#include <signal.h>
#include <sys/wait.h>
#include <time.h>

#include <algorithm>
#include <filesystem>

namespace lockstep::agent {
namespace {
// Helpers that outlive their worker (a logger that uploads its last lines) may finish; the rest is
// ended.
constexpr std::chrono::milliseconds kLeftoverGrace{2000};
constexpr std::chrono::seconds kSweepLimit{10};

const char* outcome_word(Outcome outcome) {
  switch (outcome) {
    case Outcome::succeeded:
      return "succeeded";
    case Outcome::failed:
      return "failed";
    case Outcome::signaled:
    case Outcome::signaled_early:
      return "interrupted";
    case Outcome::spawn_failed:
      return "not_started";
  }
  return "failed";
}
}  // namespace

int NodeAgent::conclude() {
  end_leftovers();
  if (group_.abandoned()) name_the_unkillable();
  for (Worker& worker : workers_) {
    if (worker.capture) worker.capture->drain_now();
    worker.capture.reset();
  }
  report(outcome_word(group_.outcome()));
  remove_unused_logs();
  store_.reset();
  health_server_.reset();
  containment_.end();
  console_.drain(io::Clock::now() +
                 std::max<std::chrono::seconds>(config_.shutdown_timeout, std::chrono::seconds(1)));
  return exit_code();
}

void NodeAgent::end_leftovers() const {
  std::vector<pid_t> left = containment_.leftovers();
  if (left.empty()) return;
  const bool patient = group_.outcome() == Outcome::succeeded;
  if (patient) {
    for (const pid_t pid : left)
      kill(pid, SIGTERM);
    const auto deadline =
        io::Clock::now() + std::min<io::Duration>(kLeftoverGrace, config_.shutdown_timeout);
    while (!containment_.leftovers().empty() && io::Clock::now() < deadline) {
      const timespec pause{0, 2'000'000};
      nanosleep(&pause, nullptr);
      reap_orphans();
    }
  }
  const proc::Sweep sweep = containment_.sweep(kSweepLimit);
  log::info("workers left {} processes behind; they were ended", left.size());
  for (const pid_t pid : sweep.unkillable)
    log::error("process {} ({}) can't be killed: it is in {}", pid, proc::command_of(pid),
               process_wchan("/proc", pid));
}

// Not one worker ever ran: bad input leaves no directory behind.
void NodeAgent::remove_unused_logs() const {
  const bool ran = std::any_of(workers_.begin(), workers_.end(),
                               [](const Worker& w) { return w.child.has_value(); });
  if (!run_dir_ || ran || attempts_ > 1) return;
  std::error_code ignored;
  std::filesystem::remove_all(run_dir_->path(), ignored);
  if (!config_.logs.base_dir)
    std::filesystem::remove(std::filesystem::path(run_dir_->path()).parent_path(), ignored);
}

void NodeAgent::name_the_unkillable() const {
  for (const Worker& worker : workers_) {
    if (!worker.child || !worker.child->alive()) continue;
    const pid_t pid = worker.child->pid();
    log::error("process {} did not exit after SIGKILL (waiting in {}); it was abandoned", pid,
               process_wchan("/proc", pid));
  }
}

void NodeAgent::report(const std::string& outcome) {
  FailureReport report;
  report.title = config_.entrypoint;
  report.run_id = config_.run_id;
  report.outcome = outcome;
  report.stop_sent_ms = stop_sent_ms_;
  if (group_.outcome() != Outcome::succeeded) report.failures = failures_;
  switch (group_.outcome()) {
    case Outcome::failed:
      copy_error_file_to_parent();
      if (!report.failures.empty())
        console_.write(logs::Stream::err,
                       std::string(kChildFailedError) + "\n" + format_report(report) + "\n");
      break;
    case Outcome::signaled:
      log::error("ended by {}; all workers are stopped", proc::signal_name(group_.signal()));
      break;
    case Outcome::spawn_failed:
      log::error("workers could not be started: {}{}{}", start_error_->message,
                 start_error_->hint.empty() ? "" : "; ", start_error_->hint);
      break;
    case Outcome::succeeded:
    case Outcome::signaled_early:
      break;
  }
  if (!config_.report_file) return;
  if (const Status written = io::write_file(*config_.report_file, report_json(report)); !written)
    log::error("--report: {}", written.error().message);
}

void NodeAgent::copy_error_file_to_parent() const {
  const auto parent = environment_.find("TORCHELASTIC_ERROR_FILE");
  if (parent == environment_.end() || parent->second.empty()) return;
  FailureReport all;
  all.failures = failures_;
  all.stop_sent_ms = stop_sent_ms_;
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
      return 0;
    case Outcome::signaled_early:
      return 128 + group_.signal();
    case Outcome::signaled:
      return unlisted_signal_ ? 128 + group_.signal() : 1;
    case Outcome::spawn_failed:
      return 1;
    case Outcome::failed:
      break;
  }
  if (config_.exit_code != ExitCodeMode::worker) return 1;
  FailureReport all;
  all.failures = failures_;
  all.stop_sent_ms = stop_sent_ms_;
  const auto root = root_cause(all);
  if (!root) return 1;
  const int code = failures_[*root].exit_code;
  return code < 0 ? 128 - code : code;
}

}  // namespace lockstep::agent
