// NodeAgent, the middle: attempts. Carries out the table's actions and reports what happens back.
#include "agent/clock_ms.h"
#include "agent/full_disk.h"
#include "agent/node_agent.h"
#include "base/log.h"
#include "base/text.h"
#include "codec/python_template.h"
#include "proc/leftovers.h"
#include "proc/signals.h"

#include <fmt/core.h>

#include <signal.h>
#include <sys/wait.h>

#include <algorithm>

namespace lockstep::agent {
namespace {
// How long the kernel may take to end a killed process before we give up on it.
constexpr std::chrono::seconds kKillLimit{10};
// A node whose agent or machine has ended is missed as soon as its connection closes.
constexpr std::chrono::milliseconds kDoubt{200};
// Workers that take their time to stop are named.
constexpr std::chrono::seconds kExplainFirst{5};
constexpr std::chrono::seconds kExplainEvery{10};
constexpr std::size_t kMostNames = 4;
}  // namespace

void NodeAgent::apply(const std::vector<Action>& actions) {
  for (const Action& action : actions)
    apply(action);
}

void NodeAgent::apply(const Action& action) {
  const auto over = [this] { apply(group_.on({EventKind::grace_over})); };
  switch (action.kind) {
    case ActionKind::join:
      return join();
    case ActionKind::arm_pause:
      return pause_.start(pause_length_, [this] { apply(group_.on({EventKind::pause_over})); });
    case ActionKind::start_attempt:
      return start_attempt();
    case ActionKind::tell_failure:
      return tell_failure(action.value != 0);
    case ActionKind::tell_stop:
      return rendezvous_->tell_stop();
    case ActionKind::enter_barrier:
      return enter_barrier();
    case ActionKind::stop_workers:
      return stop_workers(action.value);
    case ActionKind::kill_workers:
      return kill_workers();
    case ActionKind::arm_doubt:
      return doubt_.start(kDoubt, [this] { apply(group_.on({EventKind::doubt_over})); });
    case ActionKind::arm_grace:
      grace_end_ = io::Clock::now() + config_.shutdown_timeout;
      explain_stopping(kExplainFirst);
      return grace_.start(config_.shutdown_timeout, over);
    case ActionKind::arm_kill_limit:
      stopping_timer_.cancel();
      return grace_.start(kKillLimit, over);
    case ActionKind::disarm:
      stopping_timer_.cancel();
      return grace_.cancel();
    case ActionKind::finish:
      sweep_.cancel();
      // Not at once: this may be a callback of what the end releases.
      return stage_timer_.start({}, [this] { begin_conclusion(); });
  }
}

void NodeAgent::start_attempt() {
  if (attempts_ > 0) announce_restart();
  failures_.clear();
  why_stopped_.clear();
  stop_sent_ms_.reset();
  workers_.clear();
  oom_before_ = oom_.read();
  backoff_.started(io::Clock::now());
  history_.attempt_started({.at_ms = unix_ms(),
                            .restarts = round_.restarts,
                            .nodes = round_.group_world_size,
                            .group_rank = round_.group_rank,
                            .first_rank = round_.base_rank,
                            .workers = config_.nproc,
                            .world_size = round_.world_size});
  const Status started = start_workers();
  ++attempts_;
  if (started) return;
  start_error_ = started.error();
  history_.attempt_ends(AttemptEnd::start, start_error_->message);
  const auto alive = std::count_if(workers_.begin(), workers_.end(),
                                   [](const Worker& w) { return w.child.has_value(); });
  apply(group_.on({EventKind::spawn_failed, static_cast<int>(alive)}));
}

void NodeAgent::announce_restart() const {
  if (!counted_)
    return log::warning(
        "starting the workers of this node again with {} node{} (this is not counted as a "
        "restart){}",
        round_.group_world_size, round_.group_world_size == 1 ? "" : "s", why_again());
  const int left = group_.remaining_restarts();
  log::warning("restarting all workers of this node (attempt {}, {} restart{} left){}",
               round_.restarts, left, left == 1 ? "" : "s", why_again());
}

// ": rank 3 on n1 failed (exitcode: 1): ValueError: x; log: /logs/attempt_0/3/stderr.log"
std::string NodeAgent::why_again() const {
  if (history_.attempts().empty()) return {};
  const Attempt& before = history_.attempts().back();
  FailureReport here;
  here.failures = failures_;
  here.stop_sent_ms = stop_sent_ms_;
  const auto root = root_cause(here);
  if (before.end != AttemptEnd::worker || !root) return before.why.empty() ? "" : ": " + before.why;
  const WorkerFailure& failure = failures_[*root];
  std::string log = failure.stderr_log.empty() ? failure.stdout_log : failure.stderr_log;
  if (log.empty() && failure.error_file) log = *failure.error_file;
  return ": " + failure_line(failure) + (log.empty() ? "" : "; log: " + log);
}

// All nodes have agreed on the round: their heartbeats go on, and each of them waits by itself.
// What is not counted, since a node came or went, is nobody's crash and begins at once.
bool NodeAgent::hold_restart() {
  if (!counted_) return false;
  pause_length_ = backoff_.pause(io::Clock::now());
  if (pause_length_ == RestartBackoff::Duration::zero()) return false;
  log::warning(
      "waiting {} s before the restart: the last {} attempts lived less than {} s each "
      "(--restart-backoff)",
      std::chrono::duration<double>(pause_length_).count(), backoff_.short_attempts(),
      RestartBackoff::kHealthy.count());
  return true;
}

Result<std::vector<std::string>> NodeAgent::open_attempt_dir() {
  std::vector<std::string> error_files(static_cast<std::size_t>(config_.nproc));
  if (!run_dir_) return error_files;
  LOCKSTEP_TRY_ASSIGN(attempt_dir_, run_dir_->create_attempt(round_.restarts, config_.nproc));
  history_.logs_in(attempt_dir_->path);
  for (int rank = 0; rank < config_.nproc; ++rank)
    error_files[static_cast<std::size_t>(rank)] = attempt_dir_->error_file(rank);
  return error_files;
}

Status NodeAgent::start_workers() {
  AttemptFacts facts;
  if (containment_.rung() != proc::Rung::none) facts.agent_tag = proc::agent_tag(config_.job_name);
  LOCKSTEP_TRY_ASSIGN(facts.error_files, open_attempt_dir());
  const auto specs = make_worker_specs(config_, round_, facts, environment_);
  emit("ASSIGN_WORKER_RANKS", nullptr, 0.0);
  logs::FilteredFiles filtered;
  if (attempt_dir_) {
    LOCKSTEP_TRY_ASSIGN(filtered, logs::open_filtered_files(capture_rules_, *attempt_dir_));
  }
  const Environment& env = environment_;
  const auto path = env.find("PATH");
  LOCKSTEP_TRY_ASSIGN(const std::string executable,
                      proc::find_executable(config_.command.at(0),
                                            path == env.end() ? "/bin:/usr/bin" : path->second));
  workers_.reserve(specs.size());  // watches hold pointers into it
  for (const WorkerSpec& spec : specs) {
    Worker& worker = workers_.emplace_back();
    worker.spec = spec;
    worker.error_file = facts.error_files[static_cast<std::size_t>(spec.local_rank)];
    logs::CapturePlan plan = capture_plan(spec, filtered);
    worker.stdout_log = plan.out.path;
    worker.stderr_log = plan.err.path;
    LOCKSTEP_TRY_ASSIGN(worker.capture, logs::Capture::open(loop_, console_, std::move(plan)));
    LOCKSTEP_TRY(start_worker(worker, executable));
  }
  return {};
}

Status NodeAgent::start_worker(Worker& worker, const std::string& executable) {
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
  worker.capture->close_child_ends();
  worker.end_watch = std::make_unique<io::Watch>(loop_, worker.child->pidfd());
  worker.end_watch->start(io::kReadable, [this, &worker](int) { on_worker_end(worker); });
  emit("START", &worker);
  return {};
}

logs::CapturePlan NodeAgent::capture_plan(const WorkerSpec& spec,
                                          const logs::FilteredFiles& filtered) const {
  std::string prefix = codec::substitute(config_.logs.prefix_template,
                                         {{"role_name", config_.role},
                                          {"local_rank", std::to_string(spec.local_rank)},
                                          {"rank", std::to_string(spec.rank)},
                                          {"hostname", host_name_},
                                          {"time", std::string(1, logs::LinePrefix::kTime)}});
  return logs::plan_capture(capture_rules_, attempt_dir_ ? &*attempt_dir_ : nullptr, filtered,
                            spec.local_rank, spec.rank, std::move(prefix));
}

void NodeAgent::stop_workers(int signal) {
  backoff_.ended(io::Clock::now());
  if (!stop_sent_ms_) stop_sent_ms_ = unix_ms();
  for (const Worker& worker : workers_) {
    if (!worker.child || !worker.child->alive()) continue;
    log::warning("sending process {} closing signal {}", worker.child->pid(),
                 proc::signal_name(signal));
    worker.child->signal_group(SIGCONT);  // a stopped process can't heed the other one
    worker.child->signal_group(signal);
  }
}

void NodeAgent::kill_workers() {
  backoff_.ended(io::Clock::now());
  if (!stop_sent_ms_) stop_sent_ms_ = unix_ms();
  for (const Worker& worker : workers_) {
    if (!worker.child || !worker.child->alive()) continue;
    log::warning("process {} has to end now: SIGKILL", worker.child->pid());
    worker.child->signal_group(SIGKILL);
  }
}

void NodeAgent::explain_stopping(io::Duration pause) {
  stopping_timer_.start(pause, [this] {
    std::vector<std::string> names;
    for (const Worker& worker : workers_)
      if (worker.child && worker.child->alive())
        names.push_back(fmt::format("rank {} (pid {})", worker.spec.rank, worker.child->pid()));
    const std::size_t more = names.size() - std::min(names.size(), kMostNames);
    names.resize(names.size() - more);
    const auto left = std::chrono::round<std::chrono::seconds>(grace_end_ - io::Clock::now());
    if (left.count() > 0)
      log::warning("waiting for {}{} to end; SIGKILL in {} s", lockstep::join(names, ", "),
                   more > 0 ? fmt::format(" and {} more", more) : "", left.count());
    explain_stopping(kExplainEvery);
  });
}

void NodeAgent::on_worker_end(Worker& worker) {
  const auto end = worker.child->reap();
  if (!end) return;
  worker.end_watch.reset();
  worker.capture->drain_now();
  reap_orphans();
  if (end->ok()) {
    emit("SUCCEEDED", &worker);
    apply(group_.on({EventKind::worker_ok}));
  } else {
    on_failure(worker, *end);
    backoff_.ended(io::Clock::now());
    apply(group_.on({EventKind::worker_failed}));
  }
  if (group_.live() == 0) history_.workers_ended(unix_ms());
}

void NodeAgent::on_failure(const Worker& worker, const proc::Exit& end) {
  WorkerFailure failure;
  failure.global_rank = worker.spec.rank;
  failure.local_rank = worker.spec.local_rank;
  failure.host = node_name_;
  failure.pid = worker.child->pid();
  failure.exit_code = end.python_code();
  failure.seen_ms = unix_ms();
  failure.after_stop = group_.stop_ordered() && timed_out_ != failure.pid;
  failure.stdout_log = worker.stdout_log;
  failure.stderr_log = worker.stderr_log;
  if (!worker.error_file.empty()) {
    failure.error = read_error_file(worker.error_file);
    if (failure.error) failure.error_file = worker.error_file;
  }
  if (const std::string tail = worker.capture->stderr_tail(); !tail.empty())
    failure.stderr_tail = split(strip(tail), '\n');
  failure.tail_holds_stdout = worker.capture->tail_holds_stdout();
  if (auto note = oom_note(failure.exit_code, oom_before_, oom_.read(), oom_.system_wide());
      note && !failure.after_stop)
    failure.notes.push_back(std::move(*note));
  if (end.core_dumped) failure.notes.emplace_back("core dumped");
  if (attempt_dir_ && !failure.after_stop)
    if (auto note = full_disk_note(attempt_dir_->path)) failure.notes.push_back(std::move(*note));
  if (!failure.after_stop) {
    ++failures_total_;
    log::error("{}", failed_line(failure, config_.command.at(0)));
    history_.attempt_ends(AttemptEnd::worker, failure_line(failure));
  }
  emit(failure.after_stop ? "TERMINATED" : "FAILED", &worker);
  failures_.push_back(std::move(failure));
}

void NodeAgent::on_signal(int signal) {
  switch (signal) {
    case SIGCHLD:
      return reap_orphans();
    case SIGWINCH:
      for (const Worker& worker : workers_)
        if (worker.capture) worker.capture->resize();
      return;
    case SIGPIPE:
    case SIGURG:
    case SIGXFSZ:  // a file at its size limit is reported where it is written
      return;
    default:
      break;
  }
  if (signal == SIGHUP && proc::is_ignored(SIGHUP)) return;  // nohup
  const auto listed = [signal](const std::vector<int>& list) {
    return std::find(list.begin(), list.end(), signal) != list.end();
  };
  if (!listed(config_.signals) && listed(config_.forwarded_signals)) {
    for (const Worker& worker : workers_)
      if (worker.child && worker.child->alive()) kill(worker.child->pid(), signal);
    return;
  }
  auto meaning = StopRequests::Meaning::stop;
  if (signal == SIGTERM || signal == SIGINT) meaning = stop_requests_.on_request(io::Clock::now());
  if (meaning == StopRequests::Meaning::same) return;
  if (group_.state() == State::finished) return conclude(Conclusion::Event::hurry);
  if (meaning == StopRequests::Meaning::urgent) {
    conclude(Conclusion::Event::no_patience);
    return apply(group_.on({EventKind::urgent, signal}));
  }
  log::warning("received {}, {}", proc::signal_name(signal),
               group_.live() == 0 ? "leaving" : "shutting down workers");
  history_.attempt_ends(AttemptEnd::signal,
                        fmt::format("{} received {}", node_name_, proc::signal_name(signal)));
  if (listed(config_.signals)) return apply(group_.on({EventKind::stop_signal, signal}));
  // Its default action would be to die and leave the workers: stop them first.
  unlisted_signal_ = signal;
  apply(group_.on({EventKind::stop_signal, signal == SIGINT ? SIGINT : SIGTERM}));
}

void NodeAgent::on_guardian_gone() {
  guardian_watch_.reset();
  log::error("the guardian was killed; ending the job");
  conclude(Conclusion::Event::no_patience);
  if (group_.state() == State::finished) return;
  history_.attempt_ends(AttemptEnd::signal, "the guardian on " + node_name_ + " was killed");
  apply(group_.on({EventKind::urgent, SIGKILL}));
}

void NodeAgent::reap_orphans() const {
  const auto is_worker = [this](pid_t pid) {
    return std::any_of(workers_.begin(), workers_.end(), [pid](const Worker& w) {
      return w.child && w.child->alive() && w.child->pid() == pid;
    });
  };
  while (true) {
    siginfo_t info{};
    if (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) != 0 || info.si_pid == 0) return;
    if (is_worker(info.si_pid)) return;  // its own watch takes it, and then looks here again
    waitpid(info.si_pid, nullptr, 0);
  }
}

}  // namespace lockstep::agent
