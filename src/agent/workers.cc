// Starts, stops and reaps the worker processes of this node.
#include "agent/workers.h"

#include "agent/cpu_binding.h"
#include "agent/d_state.h"
#include "agent/full_disk.h"
#include "base/clock_ms.h"
#include "base/log.h"
#include "base/text.h"
#include "io/open_files.h"
#include "proc/leftovers.h"
#include "proc/signals.h"

#include <fmt/core.h>

#include <signal.h>
#include <sys/wait.h>

#include <algorithm>
#include <utility>

namespace lockstep::agent {
namespace {
// Time for the kernel to end a killed process before Lockstep gives up on it.
constexpr std::chrono::seconds kKillLimit{10};
// Pauses before the log names slow workers during a stop, and the number of names in a line.
constexpr std::chrono::seconds kNameFirst{5};
constexpr std::chrono::seconds kNameEvery{10};
constexpr std::size_t kMostNames = 4;
}  // namespace

Workers::Workers(io::Loop& loop, logs::Console& console, const proc::Containment& containment,
                 const Node& node, Listener& listener)
    : loop_(loop),
      console_(console),
      containment_(containment),
      node_(node),
      listener_(listener),
      logs_(node),
      sweep_(loop, containment),
      grace_(loop),
      naming_(loop) {}

Status Workers::prepare() {
  // This process may serve thousands of store connections.
  open_files_ = io::raise_open_files_limit();
  logs_.start_folding(console_);
  LOCKSTEP_TRY_ASSIGN(cpu_binding_,
                      plan_cpu_binding(node_.config.numa_binding, node_.config.nproc));
  return {};
}

Status Workers::open_attempt(const Round& round) {
  // start_attempt() has already reported the failures of the last attempt.
  workers_.clear();
  failures_.clear();
  stop_sent_ms_.reset();
  // The first attempt takes the value that find() has just read.
  if (oom_) {
    oom_before_ = oom_->read();
  } else {
    oom_ = OomCounter::find("");
    oom_before_ = oom_->first();
  }
  return logs_.open_attempt(round.restarts);
}

Status Workers::start(const Round& round) {
  AttemptFacts facts;
  // The mark lets a later run find workers whose agent is gone. --isolation none promises
  // torchrun's behaviour: no mark.
  if (containment_.rung() != proc::Rung::none)
    facts.agent_tag = proc::agent_tag(node_.config.job_name);
  for (int rank = 0; rank < node_.config.nproc; ++rank)
    facts.error_files.push_back(logs_.error_file(rank));
  if (logs_.recorder()) {
    facts.recorder_folder = logs_.recorder()->path();
    facts.aid_folder = logs_.recorder()->aid();
  }
  const auto specs = make_worker_specs(node_.config, round, facts, node_.environment);
  LOCKSTEP_TRY_ASSIGN(const logs::FilteredFiles filtered, logs_.open_filtered());
  // The worker's PATH decides, not a default of this process.
  const auto path = node_.environment.find("PATH");
  LOCKSTEP_TRY_ASSIGN(
      const std::string executable,
      proc::find_executable(node_.config.command.at(0),
                            path == node_.environment.end() ? "/bin:/usr/bin" : path->second));
  workers_.reserve(specs.size());  // watches hold pointers into the vector: it must not grow
  for (const WorkerSpec& spec : specs) {
    Worker& worker = workers_.emplace_back();
    worker.spec = spec;
    worker.error_file = facts.error_files[static_cast<std::size_t>(spec.local_rank)];
    LOCKSTEP_TRY(start_worker(worker, executable, filtered));
  }
  return {};
}

Status Workers::start_worker(Worker& worker, const std::string& executable,
                             const logs::FilteredFiles& filtered) {
  logs::CapturePlan plan = logs_.plan(worker.spec, filtered);
  worker.stdout_log = plan.out.path;
  worker.stderr_log = plan.err.path;
  LOCKSTEP_TRY_ASSIGN(worker.capture, logs::Capture::open(loop_, console_, std::move(plan)));
  proc::SpawnSpec spawn;
  spawn.executable = executable;
  spawn.argv = worker.spec.argv;
  spawn.env = environment_block(worker.spec.env);
  spawn.stdout_fd = worker.capture->child_stdout_fd();
  spawn.stderr_fd = worker.capture->child_stderr_fd();
  spawn.open_files = open_files_;
  spawn.cpus = cpu_binding_[static_cast<std::size_t>(worker.spec.local_rank)];
  containment_.apply(spawn);
  LOCKSTEP_TRY_ASSIGN(worker.child, proc::spawn(spawn));
  // Without this the read ends would never see end of file.
  worker.capture->close_child_ends();
  // The pidfd becomes readable when the worker ends. Unlike a pid it can never name another
  // process.
  worker.end_watch = std::make_unique<io::Watch>(loop_, worker.child->pidfd());
  worker.end_watch->start(io::kReadable, [this, &worker](int) { on_end(worker); });
  listener_.on_worker_started(worker);
  return {};
}

void Workers::note_stop() {
  if (!stop_sent_ms_) stop_sent_ms_ = unix_ms();
}

void Workers::stop(int signal) {
  note_stop();
  for (const Worker& worker : workers_) {
    if (!worker.is_alive()) continue;
    log::warning("sending process {} closing signal {}", worker.child->pid(),
                 proc::signal_name(signal));
    worker.child->signal_group(SIGCONT);  // a stopped process cannot act on the next signal
    worker.child->signal_group(signal);
  }
}

void Workers::kill() {
  note_stop();
  for (const Worker& worker : workers_) {
    if (!worker.is_alive()) continue;
    log::warning("process {} has to end now: SIGKILL", worker.child->pid());
    worker.child->signal_group(SIGKILL);
  }
}

void Workers::arm_grace() {
  const auto time = patient_ ? node_.config.stop_timeout : node_.config.shutdown_timeout;
  grace_end_ = io::Clock::now() + time;
  name_slow_ones(kNameFirst);
  grace_.start(time, [this] { listener_.on_grace_over(); });
}

void Workers::be_patient() {
  // Further signals must not move the deadline.
  if (patient_) return;
  patient_ = true;
  // Workers are already being stopped for another reason: extend their deadline.
  if (naming_.active() && node_.config.stop_timeout > node_.config.shutdown_timeout) arm_grace();
}

void Workers::arm_kill_limit() {
  naming_.cancel();
  grace_.start(kKillLimit, [this] { listener_.on_grace_over(); });
}

void Workers::disarm() {
  naming_.cancel();
  grace_.cancel();
}

void Workers::name_slow_ones(io::Duration pause) {
  naming_.start(pause, [this] {
    std::vector<std::string> names;
    for (const Worker& worker : workers_)
      if (worker.is_alive())
        names.push_back(fmt::format("rank {} (pid {})", worker.spec.rank, worker.child->pid()));
    const std::size_t more = names.size() - std::min(names.size(), kMostNames);
    names.resize(names.size() - more);
    const auto left = std::chrono::round<std::chrono::seconds>(grace_end_ - io::Clock::now());
    if (left.count() > 0)
      log::warning("waiting for {}{} to end; SIGKILL in {} s", join(names, ", "),
                   more > 0 ? fmt::format(" and {} more", more) : "", left.count());
    name_slow_ones(kNameEvery);
  });
}

void Workers::kill_timed_out(pid_t pid, int signal) {
  // Remember the pid: the worker's end counts as its own failure, although the stop follows at
  // once.
  timed_out_ = pid;
  ::kill(pid, signal);
}

void Workers::on_end(Worker& worker) {
  const auto end = worker.child->reap();
  if (!end) return;
  worker.end_watch.reset();
  // Read what the pipe holds before the failure report takes the tail.
  worker.capture->drain_now();
  // Orphans come to this process as the subreaper. Reap them here as well: SIGCHLD may have been
  // merged.
  reap_orphans();
  if (end->ok()) return listener_.on_worker_ended(worker, nullptr);
  failures_.push_back(failure_of(worker, *end));
  if (!failures_.back().after_stop) {
    ++failures_total_;
    log::error("{}", failed_line(failures_.back(), node_.config.command.at(0)));
  }
  listener_.on_worker_ended(worker, &failures_.back());
}

WorkerFailure Workers::failure_of(const Worker& worker, const proc::Exit& end) const {
  WorkerFailure failure;
  failure.global_rank = worker.spec.rank;
  failure.local_rank = worker.spec.local_rank;
  failure.host = node_.name;
  failure.pid = worker.child->pid();
  failure.exit_code = end.python_code();
  failure.seen_ms = unix_ms();
  // A worker with an expired timer failed by itself, even if the end comes after the stop.
  failure.after_stop = stop_sent_ms_ && timed_out_ != failure.pid;
  failure.stdout_log = worker.stdout_log;
  failure.stderr_log = worker.stderr_log;
  if (!worker.error_file.empty()) {
    failure.error = read_error_file(worker.error_file);
    if (failure.error) failure.error_file = worker.error_file;
  }
  if (const std::string tail = worker.capture->stderr_tail(); !tail.empty())
    failure.stderr_tail = split(strip(tail), '\n');
  failure.tail_holds_stdout = worker.capture->tail_holds_stdout();
  if (auto note = oom_note(failure.exit_code, oom_before_, oom_->read(), oom_->system_wide());
      // A worker killed during the stop was killed by Lockstep, not by the kernel.
      note && !failure.after_stop)
    failure.notes.push_back(std::move(*note));
  if (end.core_dumped) failure.notes.emplace_back("core dumped");
  // Look at the disk now: it may have space again when the report is written.
  if (const std::string dir = logs_.attempt_dir(); !dir.empty() && !failure.after_stop)
    if (auto note = full_disk_note(dir)) failure.notes.push_back(std::move(*note));
  return failure;
}

void Workers::forward(int signal) const {
  for (const pid_t pid : living())
    ::kill(pid, signal);
}

void Workers::resize_terminals() const {
  for (const Worker& worker : workers_)
    if (worker.capture) worker.capture->resize();
}

void Workers::reap_orphans() const {
  while (true) {
    siginfo_t info{};
    // WNOWAIT only looks: reaping a worker here would steal the exit status from its Child object.
    if (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) != 0 || info.si_pid == 0) return;
    const auto is_it = [&info](const Worker& w) {
      return w.is_alive() && w.child->pid() == info.si_pid;
    };
    // A worker is reaped by its own watch, which then calls this function again.
    // So is a helper.
    if (std::any_of(workers_.begin(), workers_.end(), is_it) || containment_.spares(info.si_pid))
      return;
    waitpid(info.si_pid, nullptr, 0);
  }
}

void Workers::sweep_leftovers(io::Duration limit, std::function<void()> then) {
  sweep_.start(limit, std::move(then));
}

void Workers::name_the_abandoned() const {
  for (const pid_t pid : living())
    log::error("abandoned process {}: still alive after SIGKILL ({})", pid,
               what_holds("/proc", pid));
}

void Workers::close_output() {
  for (Worker& worker : workers_) {
    // The last bytes of an abandoned worker may still be in its pipe.
    if (worker.capture) worker.capture->drain_now();
    worker.capture.reset();
  }
}

std::vector<pid_t> Workers::living() const {
  std::vector<pid_t> pids;
  for (const Worker& worker : workers_)
    if (worker.is_alive()) pids.push_back(worker.child->pid());
  return pids;
}

std::vector<Sight::Target> Workers::targets() const {
  std::vector<Sight::Target> targets;
  targets.reserve(workers_.size());
  const io::TimePoint now = io::Clock::now();
  for (const Worker& worker : workers_) {
    Sight::Target& target = targets.emplace_back();
    target.rank = worker.spec.rank;
    if (worker.is_alive()) target.pid = worker.child->pid();
    if (!worker.capture) continue;
    target.output = worker.capture.get();
    const logs::Capture::Printed printed = worker.capture->printed();
    target.output_bytes = static_cast<std::int64_t>(printed.bytes);
    if (printed.last)
      target.output_age = std::chrono::duration_cast<looks::Millis>(now - *printed.last);
  }
  return targets;
}

std::vector<const WorkerSpec*> Workers::specs() const {
  std::vector<const WorkerSpec*> specs;
  specs.reserve(workers_.size());
  for (const Worker& worker : workers_)
    specs.push_back(&worker.spec);
  return specs;
}

void Workers::add_notes(const std::vector<std::string>& lines) {
  if (failures_.empty()) return;
  auto& notes = failures_.back().notes;
  notes.insert(notes.end(), lines.begin(), lines.end());
}

bool Workers::has_run() const {
  return std::any_of(workers_.begin(), workers_.end(),
                     [](const Worker& w) { return w.child.has_value(); });
}

}  // namespace lockstep::agent
