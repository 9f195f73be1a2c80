#include "machine/lease_watch.h"

#include "base/clock_ms.h"
#include "base/text.h"
#include "codec/json.h"
#include "io/fd.h"
#include "io/loop.h"
#include "job/job_files.h"
#include "job/stop_job.h"
#include "machine/elevated.h"
#include "machine/ending_variables.h"
#include "machine/lease_files.h"
#include "machine/lease_rule.h"
#include "machine/notice_watch.h"
#include "machine/sessions.h"
#include "proc/helper_output.h"
#include "proc/spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>

namespace lockstep::machine {
namespace {

constexpr std::chrono::milliseconds kTick{500};
constexpr std::int64_t kSurveyEvery = 2'000;
constexpr std::int64_t kGpusEvery = 10'000;
constexpr int kBusyPercent = 5;
constexpr std::int64_t kEndEvery = 5'000;  // ms before a failed end is tried again
// ms to wait for services to stop, then power off at once
constexpr std::int64_t kEndPatience = 30'000;
constexpr int kStartLooks = 2500;
constexpr int kStartLook = 2;  // ms

// Returns the load of the busiest GPU in percent; -1: unknown.
int gpu_percent() {
  const auto text = proc::helper_output(
      {"nvidia-smi", "--query-gpu=utilization.gpu", "--format=csv,noheader,nounits"});
  int most = -1;
  for (const std::string& line : split(text.value_or(""), '\n'))
    if (const auto percent = parse_int(line); percent && *percent >= 0 && *percent <= 100)
      most = std::max(most, static_cast<int>(*percent));
  return most;
}

class LeaseWatch {
 public:
  LeaseWatch(KeptLease lease, io::Fd lock)
      : lease_(std::move(lease)), lock_(std::move(lock)), tick_(loop_) {}

  int run();

 private:
  void listen();
  void look();
  bool read_lease();
  void survey(std::int64_t now);
  void work(std::int64_t now);
  void stop_jobs(const std::string& why);
  void end_machine(std::int64_t now, const std::string& why);
  void note();

  io::Loop loop_;
  KeptLease lease_;
  io::Fd lock_;
  SeenLease seen_;
  std::optional<SeenLease> noted_;
  std::int64_t idle_since_ = boot_ms();
  std::int64_t surveyed_ = 0;
  std::int64_t asked_gpus_ = 0;
  std::int64_t ending_since_ = 0;
  std::int64_t tried_end_ = 0;
  std::set<std::string> running_;  // ids of running jobs
  std::set<std::string> stopped_;  // ids of jobs asked to end
  std::unique_ptr<NoticeWatch> notices_;
  std::optional<proc::Child> ender_;
  io::Timer tick_;
};

int LeaseWatch::run() {
  // Take over a notice recorded by a killed daemon: the provider may not send it again.
  if (const auto before = read_seen_lease(); before && !before->notice.empty()) {
    seen_.notice = before->notice;
    seen_.notice_ms = before->notice_ms;
  }
  listen();
  tick_.start({}, [this] { look(); });
  loop_.run();
  return 0;
}

void LeaseWatch::listen() {
  notices_.reset();
  if (!seen_.notice.empty() || lease_.terms.notice == NoticeSource::none) return;
  auto opened = NoticeWatch::open(loop_, lease_.terms.notice, lease_.terms.metadata,
                                  [this](std::string words) {
                                    seen_.notice = std::move(words);
                                    seen_.notice_ms = unix_ms();
                                    // Look at once: the notice may leave only seconds.
                                    surveyed_ = 0;
                                    tick_.start({}, [this] { look(); });
                                  });
  if (opened) notices_ = std::move(*opened);
}

// Returns false once the lease is gone. If the file cannot be read, the last terms count: the
// machine must not stay for ever.
bool LeaseWatch::read_lease() {
  auto lease = read_kept_lease();
  if (!lease) return lease.error().code != Errc::not_found;
  const bool other_source =
      lease->terms.notice != lease_.terms.notice || lease->terms.metadata != lease_.terms.metadata;
  lease_ = std::move(*lease);
  if (other_source) listen();
  return true;
}

void LeaseWatch::look() {
  if (!read_lease()) return loop_.stop();
  const std::int64_t now = boot_ms();
  // A request of a client counts as use, even if no process runs at a survey.
  idle_since_ = std::max(idle_since_, lease_.touched);
  if (now - surveyed_ >= kSurveyEvery) survey(now);
  work(now);
  note();
  tick_.start(kTick, [this] { look(); });
}

void LeaseWatch::survey(std::int64_t now) {
  surveyed_ = now;
  running_.clear();
  for (const std::string& id : job::JobFiles::ids()) {
    const auto files = job::JobFiles::open(id);
    if (!files || !files->has_supervisor()) continue;
    const auto record = files->record();
    // An unreadable record may be of a running job.
    if (!record || record->state.stage != job::Stage::ended) running_.insert(id);
  }
  seen_.jobs = static_cast<int>(running_.size());
  // A user at a shell or an editor uses the machine without a job.
  seen_.sessions = working_sessions(all_processes());
  if (seen_.jobs > 0 || seen_.sessions > 0) {
    seen_.gpu_percent = -1;
    asked_gpus_ = 0;
    idle_since_ = now;
  } else if (now - asked_gpus_ >= kGpusEvery) {  // takes up to a second, so only while nothing runs
    seen_.gpu_percent = gpu_percent();
    asked_gpus_ = boot_ms();
    if (seen_.gpu_percent >= kBusyPercent) idle_since_ = asked_gpus_;
  }
}

void LeaseWatch::work(std::int64_t now) {
  const LeaseStep step = next_step({.now = now,
                                    .begin = lease_.begin,
                                    .end = lease_.end,
                                    .idle_limit = lease_.terms.idle_s * 1000,
                                    .idle_since = idle_since_,
                                    .hold_until = lease_.hold_until,
                                    .jobs = seen_.jobs,
                                    .notice = seen_.notice});
  seen_.why = step.why;
  switch (step.kind) {
    case LeaseStep::Kind::wait:
      seen_.phase = LeaseState::Phase::running;
      stopped_.clear();
      return;
    case LeaseStep::Kind::stop_jobs:
      seen_.phase = LeaseState::Phase::stopping_jobs;
      return stop_jobs(step.why);
    case LeaseStep::Kind::end:
      return end_machine(now, step.why);
  }
}

// Asks each job once: a second signal would cut short the time that ranks have to save their work.
void LeaseWatch::stop_jobs(const std::string& why) {
  for (const std::string& id : running_) {
    if (!stopped_.insert(id).second) continue;
    if (const auto files = job::JobFiles::open(id)) (void)job::stop_job(*files, why);
  }
}

void LeaseWatch::end_machine(std::int64_t now, const std::string& why) {
  seen_.phase = LeaseState::Phase::ending;
  if (ending_since_ == 0) {
    ending_since_ = now;
    // Before the end: clients may still read the reason.
    note();
    stop_jobs(why);
  }
  // Reap the last attempt before starting another.
  if (ender_ && ender_->alive()) ender_->reap();
  if (tried_end_ != 0 && now - tried_end_ < kEndEvery) return;
  tried_end_ = now;
  proc::SpawnSpec spec;
  spec.executable = "/bin/sh";
  std::string words(lease_.terms.ending.command);
  // -f skips the services that may hang.
  if (now - ending_since_ >= kEndPatience) words = "poweroff -f || " + words;
  spec.argv = {"sh", "-c", std::move(words)};
  spec.env = proc::own_environment();
  for (std::string& entry : variables_of(lease_.terms.ending))
    spec.env.push_back(std::move(entry));
  // The shutdown also kills this daemon, and must still go on.
  spec.die_with_parent = false;
  if (auto child = proc::spawn(spec)) ender_ = std::move(*child);
}

// A full /run (it is in memory) must not keep the machine from ending.
void LeaseWatch::note() {
  seen_.idle_since = idle_since_ == surveyed_ ? 0 : idle_since_;
  if (noted_ == seen_) return;
  if (write_seen_lease(seen_)) noted_ = seen_;
}

}  // namespace

Result<int> watch_lease() {
  signal(SIGPIPE, SIG_IGN);
  signal(SIGHUP, SIG_IGN);
  // One daemon is enough.
  auto lock = daemon_lock();
  if (!lock && lock.error().code == Errc::already_exists) return 0;
  if (!lock) return Failure(lock.error());
  LOCKSTEP_TRY_ASSIGN(KeptLease lease, read_kept_lease());
  // Jobs are in the user's folders, not in root's.
  setenv("HOME", lease.home.c_str(), 1);
  setenv("XDG_STATE_HOME", lease.state.substr(0, lease.state.rfind('/')).c_str(), 1);
  if (chdir("/") != 0) return fail_sys("enter /", errno);
  LeaseWatch watch(std::move(lease), std::move(*lock));
  return watch.run();
}

Status start_lease_watch() {
  if (daemon_lives()) return {};
  // The daemon outlives the connection, so it must not hold the client's pipes.
  const io::Fd null(open("/dev/null", O_RDWR | O_CLOEXEC));
  proc::SpawnSpec spec;
  LOCKSTEP_TRY_ASSIGN(spec.executable, proc::own_executable());
  spec.argv = {"lockstep", "host-lease", "watch"};
  spec.env = proc::own_environment();
  spec.folder = "/";
  spec.stdin_fd = spec.stdout_fd = spec.stderr_fd = null.get();
  spec.die_with_parent = false;
  LOCKSTEP_TRY_ASSIGN(proc::Child child, proc::spawn(spec));
  // The daemon shows its life by the lock.
  for (int look = 0; look < kStartLooks && !daemon_lives(); ++look) {
    if (child.reap()) break;
    poll(nullptr, 0, kStartLook);
  }
  if (daemon_lives()) return {};
  return fail(Errc::unavailable, "the lease daemon does not start");
}

}  // namespace lockstep::machine
