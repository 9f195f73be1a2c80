// Wires the parts of a job: routes their events to the WorkerGroup table and carries out its
// actions.
#include "agent/node_agent.h"

#include "agent/health_port.h"
#include "agent/restart_notice.h"
#include "base/clock_ms.h"
#include "base/log.h"
#include "base/text.h"
#include "launch/backend_choice.h"
#include "proc/leftovers.h"
#include "proc/signals.h"

#include <fmt/core.h>

#include <errno.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

namespace lockstep::agent {
namespace {

// Longest delay between a worker's failure and the news that a node died. The death of an agent or
// machine closes its connection at once, so a short wait is enough.
constexpr std::chrono::milliseconds kDoubt{200};

// Checks --report before anything is started. Does not create the file.
Status check_writable(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  const std::string folder = slash == std::string::npos ? "." : path.substr(0, slash + 1);
  const bool exists = access(path.c_str(), F_OK) == 0;
  if (access(exists ? path.c_str() : folder.c_str(), W_OK) != 0)
    return fail_sys("--report " + path, errno);
  struct stat found {};
  if (exists && stat(path.c_str(), &found) == 0 && S_ISDIR(found.st_mode))
    return fail_sys("--report " + path, EISDIR);
  return {};
}

}  // namespace

NodeAgent::NodeAgent(const launch::LaunchConfig& config, proc::Containment containment)
    : node_(node_of(config)),
      history_(unix_ms()),
      console_(loop_),
      containment_(std::move(containment)),
      group_(config.nproc, config.max_restarts, config.min_nodes < config.max_nodes),
      membership_(loop_, node_, *this,
                  [this](rendezvous::OfferStore offer_store) {
                    return launch::make_backend(loop_, node_.config, offer_of(node_),
                                                std::move(offer_store));
                  }),
      workers_(loop_, console_, containment_, node_, *this),
      restart_pause_(loop_, config.restart_backoff),
      doubt_(loop_),
      signals_(loop_, config, workers_, *this),
      watchdogs_(
          loop_, containment_, [this] { return workers_.living(); }, *this),
      gpus_(
          loop_, node_, containment_, [this] { return workers_.specs(); },
          [this] { workers_.reap_orphans(); },
          [this](const std::string& words) { chronicle_.gpu_fault(words); }),
      sight_(
          loop_, node_, gpus_, [this] { return workers_.targets(); },
          [this] { return membership_.store(); },
          {.open = [this] { return membership_.carries_news(); },
           .send = [this](const std::string& text) { return membership_.send_news(text); }},
          *this),
      profiles_(loop_, config.profile, [this] { return workers_.targets(); }),
      chronicle_(loop_, node_, containment_, [this] { workers_.reap_orphans(); }),
      status_page_({.loop = loop_,
                    .node = node_,
                    .history = history_,
                    .sight = sight_,
                    .view = [this] { return view(); }}),
      end_(node_, {loop_, console_, containment_, membership_, workers_, history_, health_port_,
                   chronicle_}) {}

// Runs the job. If prepare() fails, close everything here: no worker was started, so EndOfJob does
// not run.
Result<int> NodeAgent::run() {
  const Status ready = prepare();
  if (!ready) {
    watchdogs_.close();
    sight_.close();
    gpus_.close();
    profiles_.close();
    chronicle_.close();
    containment_.end();
    console_.drain(io::Clock::now() + std::chrono::seconds(1));
    console_.leave_log();
    return Failure(ready.error());
  }
  signals_.poll();  // a signal that arrived before now ends the job before anything is started
  if (group_.state() == State::waiting) feed({EventKind::begin});
  loop_.run();  // runs until EndOfJob stops the loop
  watchdogs_.close();
  sight_.close();
  gpus_.close();
  profiles_.close();
  chronicle_.close();
  console_.leave_log();
  if (reasons_.rendezvous_error && history_.attempts_total() == 0)
    return Failure(*reasons_.rendezvous_error);
  return end_.exit_code();
}

// --- setting up ---

// The order matters: signals are watched before anything slow begins, and an earlier run is swept
// before this one starts a process with the same mark.
Status NodeAgent::prepare() {
  const launch::LaunchConfig& config = node_.config;
  console_.take_log();
  if (config.report_file) LOCKSTEP_TRY(check_writable(*config.report_file));
  LOCKSTEP_TRY(chronicle_.open());
  LOCKSTEP_TRY(gpus_.open_job_dir());
  LOCKSTEP_TRY(signals_.open(containment_.guardian()));
  LOCKSTEP_TRY(workers_.prepare());
  sweep_earlier_run();
  LOCKSTEP_TRY(watchdogs_.open(node_));
  http::Handlers more;
  more["/events"] = [this](const http::Request& request) { return chronicle_.answer(request); };
  more["/page"] = [this](const http::Request& request) { return status_page_.answer(request); };
  profiles_.open(node_.environment);
  more["/profile"] = [this](const http::Request& request) {
    return profiles_.answer(request, node_.name);
  };
  sight_.open(containment_.guardian() != nullptr ? containment_.guardian()->pid : getpid(),
              std::move(more));
  health_port_ = open_health_port(
      loop_, node_.config.watch.health_port, [this] { return view(); },
      [this] { return sight_.rows(); });
  status_page_.show_events(
      {.last = [this] { return chronicle_.last(); },
       .answer = [this](const http::Request& request) { return chronicle_.answer(request); }});
  status_page_.open();
  return {};
}

// Kills what an earlier run of this job left behind. Without a job name (--rdzv-id) leftovers
// cannot be recognised.
void NodeAgent::sweep_earlier_run() const {
  const std::string& job = node_.config.job_name;
  if (job.empty() || containment_.rung() == proc::Rung::none) return;
  const auto killed = proc::kill_leftovers(job);
  if (!killed.empty())
    log::warning("ended {} processes that an earlier run of job '{}' had left on this node",
                 killed.size(), printable(job));
}

// --- actions of the table ---

// The only way into the table, but for on_interruption().
void NodeAgent::feed(Event event) {
  for (const Action& action : group_.on(event))
    carry_out(action);
}

void NodeAgent::carry_out(const Action& action) {
  switch (action.kind) {
    case ActionKind::join:
      return join();
    case ActionKind::arm_pause:
      return restart_pause_.start([this] { feed({EventKind::pause_over}); });
    case ActionKind::start_attempt:
      return start_attempt();
    case ActionKind::tell_failure:
      return tell_failure(action.value != 0);
    case ActionKind::tell_stop:
      return membership_.tell_stop();
    case ActionKind::enter_barrier:
      return membership_.enter_barrier();
    case ActionKind::stop_workers:
      attempt_ends();
      return workers_.stop(action.value);
    case ActionKind::kill_workers:
      attempt_ends();
      return workers_.kill();
    case ActionKind::arm_doubt:
      return doubt_.start(kDoubt, [this] { feed({EventKind::doubt_over}); });
    case ActionKind::arm_grace:
      return workers_.arm_grace();
    case ActionKind::arm_kill_limit:
      return workers_.arm_kill_limit();
    case ActionKind::disarm:
      return workers_.disarm();
    case ActionKind::finish:
      return finish();
  }
}

// A rank in state D may keep its GPU, and the next attempt on this node may get stuck in the same
// way. Only the first stop of an attempt sees the rank: sight_.attempt_ends() forgets the looks.
void NodeAgent::judge_host() {
  if (node_.config.hang.then != launch::HangConfig::Then::restart || !group_.restarts()) return;
  const auto stuck = sight_.stuck_rank();
  if (stuck && membership_.give_way(true))
    log::warning("rank {} is in state D: a spare takes the place of this node if one waits",
                 *stuck);
}

// Every way to stop or kill the workers comes through here.
void NodeAgent::attempt_ends() {
  judge_host();
  if (workers_.failures().empty()) read_places({});
  sight_.attempt_ends();
  chronicle_.stopping(history_.attempts().empty() ? "" : history_.attempts().back().why);
  restart_pause_.attempt_ended();
}

// Notes where the ranks are. Call before a signal goes out: a handler of SIGTERM changes the
// stacks. The first answer of an attempt counts.
void NodeAgent::read_places(std::optional<int> failed) {
  if (!reasons_.others.empty()) return;
  reasons_.others = sight_.where_others_are(failed);
  history_.ranks_were(reasons_.others);
}

// Sweep leftovers before each new attempt: no process of an old attempt may survive into the next.
void NodeAgent::join() {
  membership_.stop_waiting();
  restart_pause_.cancel();
  // Begin the first round at once: there is nothing to sweep.
  const auto join_next = [this] {
    emit(node_event(view(), "RENDEZVOUS"));
    chronicle_.rendezvous_begun();
    membership_.join();
  };
  if (history_.attempts_total() == 0) return join_next();
  workers_.sweep_leftovers(Conclusion::kKillLimit, join_next);
}

void NodeAgent::start_attempt() {
  const Round& round = membership_.round();
  membership_.give_way(false);
  if (history_.attempts_total() > 0) {
    FailureReport before;
    before.failures = workers_.failures();
    before.stop_sent_ms = workers_.stop_sent_ms();
    const std::string notice = restart_notice({.counted = restart_pause_.counted(),
                                               .restarts = round.restarts,
                                               .restarts_left = group_.remaining_restarts(),
                                               .nodes = round.group_world_size},
                                              history_, before);
    log::warning("{}", notice);
    chronicle_.again(restart_pause_.counted(), notice);
  }
  if (history_.attempts_total() == 0 && round.restarts == 0 && round.group_rank == 0)
    // Node 0 prints warnings about the whole job, once, instead of every node.
    for (const std::string& warning : node_.config.job_warnings)
      log::warning("{}", warning);
  reasons_.why_stopped.clear();
  reasons_.others.clear();
  restart_pause_.attempt_started();
  history_.attempt_started({.at_ms = unix_ms(),
                            .restarts = round.restarts,
                            .nodes = round.group_world_size,
                            .group_rank = round.group_rank,
                            .first_rank = round.base_rank,
                            .workers = node_.config.nproc,
                            .world_size = round.world_size});
  chronicle_.attempt_started(round, history_.attempts_total());
  const Status started = start_workers();
  if (started) return;
  reasons_.start_error = started.error();
  // Some workers may have started before the failure. The table kills these.
  history_.attempt_ends(AttemptEnd::start, started.error().message);
  feed({EventKind::spawn_failed, static_cast<int>(workers_.living().size())});
}

Status NodeAgent::start_workers() {
  const Round& round = membership_.round();
  LOCKSTEP_TRY(workers_.open_attempt(round));
  history_.logs_in(workers_.logs().attempt_dir());
  profiles_.attempt_starts();
  emit(node_event(view(), "ASSIGN_WORKER_RANKS"));
  gpus_.open();
  LOCKSTEP_TRY(workers_.start(round));
  gpus_.attempt_started();
  sight_.attempt_started(round, history_.attempts_total(), workers_.logs().attempt_dir(),
                         workers_.logs().recorder());
  return {};
}

void NodeAgent::tell_failure(bool final) {
  // Name the most specific reason: a failed worker, then a failed start, then the event.
  std::string line = reasons_.why_stopped;
  if (reasons_.start_error)
    line = fmt::format("workers on {} could not be started: {}", node_.name,
                       reasons_.start_error->message);
  if (!workers_.failures().empty()) line = failure_line(workers_.failures().back());
  membership_.tell_failure(line, final);
}

void NodeAgent::finish() {
  membership_.stop_waiting();
  workers_.cancel_sweep();
  const launch::LaunchConfig& config = node_.config;
  JobEnd end = reasons_;
  end.outcome = group_.outcome();
  if (end.outcome == Outcome::stuck) {
    // In time: this node's last sweep may take as long again.
    if (membership_.others_can_go_on())
      membership_.tell_stop();
    else
      end.outcome = Outcome::failed;
  }
  end.title = config.entrypoint;
  end.run_id = config.run_id;
  end.image = config.container.image;
  end.node = node_.name;
  // A signal outside --signals-to-handle is kept in reasons_: the exit code must name it, although
  // workers got SIGTERM.
  if (!end.default_signal) end.signal = group_.signal();
  end.stop_sent_ms = workers_.stop_sent_ms();
  // In the next turn: the history does not know yet that the attempt has ended.
  loop_.post([this, end] { status_page_.show_end(end, workers_.failures()); });
  end_.begin(std::move(end));
}

// --- events of other nodes ---

void NodeAgent::on_joined(const Round& round, bool counted) {
  // Not before the first round: a node that is never needed leaves no log directory.
  if (history_.attempts_total() == 0)
    if (const Status opened = workers_.logs().open(); !opened)
      return on_join_failed(opened.error());
  chronicle_.round_formed(round);
  const bool pause = restart_pause_.agreed(counted);
  feed({EventKind::joined, round.restarts, round.max_restarts, pause});
}

void NodeAgent::on_join_failed(Error error) {
  reasons_.rendezvous_error = std::move(error);
  feed({EventKind::join_failed});
}

void NodeAgent::on_spare_over() {
  if (history_.attempts_total() == 0)
    log::warning("the job has ended; this node was a spare and was never used: nothing ran here");
  else
    log::info("the job has ended; this node was a spare in the end");
  feed({EventKind::spare_over});
}

void NodeAgent::on_interruption(rendezvous::Interruption::Kind kind, const std::string& why) {
  if (is_over()) return;
  const bool end = kind == rendezvous::Interruption::Kind::end;
  reasons_.why_stopped = why;
  // During a stop the other nodes' reasons are only consequences.
  if (!group_.stop_ordered())
    log::warning("{} the workers of this node: {}", end ? "ending" : "stopping", why);
  const auto actions = group_.on({end ? EventKind::end : EventKind::rejoin});
  // If the group joins a new round because of this event, the lost node explains an earlier failure
  // of a worker here. The node then overrules the worker as the reason.
  const bool explains =
      !end && (group_.cause() == Cause::rejoin || group_.state() == State::joining);
  history_.attempt_ends(AttemptEnd::nodes, why, explains);
  for (const Action& action : actions)
    carry_out(action);
}

void NodeAgent::on_barrier_over() {
  feed({EventKind::barrier_over});
}

// --- events of workers ---

void NodeAgent::on_worker_started(const Worker& worker) {
  emit(worker_event(view(), "START", worker));
}

void NodeAgent::on_worker_ended(const Worker& worker, const WorkerFailure* failure) {
  // The table may begin the next attempt at once.
  const bool last = group_.live() == 1;
  if (failure == nullptr) {
    emit(worker_event(view(), "SUCCEEDED", worker));
    chronicle_.rank_ended(worker.spec.rank, 0);
    if (last) chronicle_.workers_ended();
    feed({EventKind::worker_ok});
  } else {
    // A worker that ends after the stop has not failed by itself.
    if (failure->after_stop) {
      emit(worker_event(view(), "TERMINATED", worker));
      chronicle_.rank_ended(worker.spec.rank, failure->exit_code);
    } else {
      read_places(failure->global_rank);
      workers_.tell_others(reasons_.others);
      gpus_.read_faults();
      workers_.add_notes(gpus_.faults());
      history_.attempt_ends(AttemptEnd::worker, failure_line(*failure));
      chronicle_.rank_failed(worker.spec.rank, failure->exit_code, failure_line(*failure));
      emit(worker_event(view(), "FAILED", worker, failure));
    }
    if (last) chronicle_.workers_ended();
    restart_pause_.attempt_ended();
    feed({EventKind::worker_failed});
  }
  if (group_.live() != 0) return;
  sight_.attempt_ends();
  history_.workers_ended(unix_ms());
}

void NodeAgent::on_grace_over() {
  feed({EventKind::grace_over});
}

void NodeAgent::on_timer_expired(pid_t pid, int signal, const std::string& why) {
  reasons_.why_stopped = why;
  // The timer belongs to a process that hangs: the job cannot go on, so no restart.
  log::error("{}; sending the process {} and ending the job", why, proc::signal_name(signal));
  history_.attempt_ends(AttemptEnd::watchdog, why);
  read_places({});
  workers_.kill_timed_out(pid, signal);
  feed({EventKind::unhealthy});
}

void NodeAgent::on_stuck_worker(const std::string& why) {
  if (group_.state() != State::running) return;
  reasons_.why_stopped = why;
  log::error("{}; ending the job", why);
  history_.attempt_ends(AttemptEnd::watchdog, why);
  feed({EventKind::unhealthy});
}

void NodeAgent::on_hang(const std::string& why) {
  if (group_.state() != State::running) return;
  const bool restart = node_.config.hang.then == launch::HangConfig::Then::restart &&
                       group_.remaining_restarts() > 0;
  reasons_.why_stopped = why;
  log::error("{}: {}", restart ? "restarting all workers" : "ending the job", why);
  history_.attempt_ends(AttemptEnd::hang, why);
  feed({restart ? EventKind::hung : EventKind::unhealthy});
}

void NodeAgent::on_look(const looks::Fold& fold, const looks::Verdict& verdict,
                        const looks::Redo& redo) {
  std::vector<int> printed;
  for (const Sight::Target& worker : workers_.targets())
    if (worker.output_bytes > 0) printed.push_back(worker.rank);
  chronicle_.on_look(fold, verdict, printed, redo);
}

// --- requests to end the job ---

void NodeAgent::on_urgent(int signal) {
  // After the last worker has ended, a signal only shortens the end.
  if (is_over()) return end_.hurry();
  end_.lose_patience();
  feed({EventKind::urgent, signal});
}

void NodeAgent::on_stop(int signal, bool listed) {
  if (is_over()) return end_.hurry();
  const bool repeats = signal == SIGINT || signal == SIGTERM;
  const std::string_view stops =
      repeats ? "shutting down workers; a second signal kills the workers at once"
              : "shutting down workers";
  log::warning("received {}, {}", proc::signal_name(signal),
               group_.live() == 0 ? "leaving" : stops);
  history_.attempt_ends(AttemptEnd::signal,
                        fmt::format("{} received {}", node_.name, proc::signal_name(signal)));
  // A job that is told to stop gets the stop timeout for its checkpoint, not only
  // --shutdown-timeout.
  workers_.be_patient();
  if (listed) return feed({EventKind::stop_signal, signal});
  // The default action of this signal would end the agent and leave the workers behind. Stop the
  // workers first.
  reasons_.signal = signal;
  reasons_.default_signal = true;
  feed({EventKind::stop_signal, signal == SIGINT ? SIGINT : SIGTERM});
}

void NodeAgent::on_guardian_gone() {
  log::error("the guardian was killed; ending the job");
  end_.lose_patience();
  if (is_over()) return;
  history_.attempt_ends(AttemptEnd::signal, "the guardian on " + node_.name + " was killed");
  feed({EventKind::urgent, SIGKILL});
}

// --- for observers ---

JobView NodeAgent::view() const {
  return {.node = node_,
          .round = membership_.round(),
          .attempts = history_.attempts_total(),
          .workers_alive = group_.live(),
          .remaining_restarts = group_.remaining_restarts(),
          .failures = workers_.failures_total(),
          .healthy = !group_.stop_ordered() && !is_over(),
          .goodput = chronicle_.goodput()};
}

void NodeAgent::emit(const status::Event& event) {
  // "null" is torchrun's default: events go nowhere.
  if (node_.config.event_handler == launch::EventHandler::null) return;
  console_.write(logs::Stream::err, status::event_json(event) + "\n");
}

}  // namespace lockstep::agent
