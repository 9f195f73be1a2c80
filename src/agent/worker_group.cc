// Implements the WorkerGroup table. While doubt_ is set, on() decides when the last failure
// is told; on_state() has one function per state.
#include "agent/worker_group.h"

#include <signal.h>

#include <algorithm>
#include <utility>

namespace lockstep::agent {

// Holds back the news of the last failure while a lost node may be to blame (see the constructor).
std::vector<Action> WorkerGroup::on(Event event) {
  if (!doubt_) return on_state(event);
  switch (event.kind) {
    // The lost node is to blame: join the next round and forget the failure.
    case EventKind::rejoin:
      doubt_ = false;
      cause_ = Cause::rejoin;
      return on_state(event);
    case EventKind::end:
      doubt_ = false;
      return on_state(event);
    case EventKind::grace_over:
      if (state_ != State::killing) return on_state(event);
      [[fallthrough]];
    // No lost node was found in time: the failure is real and final. Tell it before anything else.
    case EventKind::doubt_over:
    case EventKind::stop_signal:
    case EventKind::urgent:
    case EventKind::unhealthy: {
      doubt_ = false;
      Actions actions = on_state(event);
      actions.insert(actions.begin(), {ActionKind::tell_failure, 1});
      return actions;
    }
    default:
      return on_state(event);
  }
}

WorkerGroup::Actions WorkerGroup::on_state(Event event) {
  switch (state_) {
    case State::waiting:
      if (event.kind == EventKind::begin) return join();
      // Nothing runs yet, so a signal ends the job as during joining.
      if (event.kind == EventKind::stop_signal || event.kind == EventKind::urgent)
        return on_joining(event);
      return {};
    case State::joining:
      return on_joining(event);
    case State::pausing:
      return on_pausing(event);
    case State::running:
      return on_running(event);
    case State::stopping:
      return on_stopping(event);
    case State::killing:
      return on_killing(event);
    case State::in_doubt:
      return on_doubt(event);
    case State::in_barrier:
      return on_barrier(event);
    case State::finished:
      return {};
  }
  return {};
}

WorkerGroup::Actions WorkerGroup::join() {
  state_ = State::joining;
  cause_ = Cause::none;
  return {{ActionKind::join}};
}

WorkerGroup::Actions WorkerGroup::agreed(const Event& joined) {
  started_ = true;
  // Nodes may allow different numbers of restarts (--max-restarts). The smallest one counts.
  remaining_ = std::max(0, std::min(max_restarts_, joined.limit) - joined.value);
  if (!joined.hold) return begin();
  state_ = State::pausing;
  return {{ActionKind::arm_pause}};
}

WorkerGroup::Actions WorkerGroup::begin() {
  state_ = State::running;
  live_ = nproc_;
  return {{ActionKind::start_attempt}};
}

WorkerGroup::Actions WorkerGroup::on_joining(Event event) {
  switch (event.kind) {
    case EventKind::joined:
      return agreed(event);
    case EventKind::join_failed:
      return finish(Outcome::no_rendezvous);
    case EventKind::spare_over:
      // A node with a finished round was not a spare: the job succeeded.
      return finish(started_ ? Outcome::succeeded : Outcome::spare);
    case EventKind::end:
      return finish(Outcome::peer_failed);
    case EventKind::stop_signal:
    case EventKind::urgent:
      signal_ = event.value;
      return finish(started_ ? Outcome::signaled : Outcome::signaled_early);
    default:
      return {};
  }
}

// No worker runs, so every event that would stop workers ends the pause at once.
WorkerGroup::Actions WorkerGroup::on_pausing(Event event) {
  switch (event.kind) {
    case EventKind::pause_over:
      return begin();
    case EventKind::rejoin:
      return join();
    case EventKind::end:
      return finish(Outcome::peer_failed);
    case EventKind::stop_signal:
    case EventKind::urgent:
      signal_ = event.value;
      return finish(Outcome::signaled);
    default:
      return {};
  }
}

WorkerGroup::Actions WorkerGroup::on_running(Event event) {
  switch (event.kind) {
    case EventKind::worker_ok:
      return one_ended(false);
    case EventKind::worker_failed:
      return fail_here();
    case EventKind::spawn_failed: {
      // value: the number of started workers. Kill these: the group is incomplete.
      live_ = event.value;
      cause_ = Cause::spawn_failed;
      Actions actions = live_ == 0 ? all_ended() : kill(Cause::spawn_failed);
      actions.insert(actions.begin(), {ActionKind::tell_failure, 1});
      return actions;
    }
    case EventKind::stop_signal:
      return stop(Cause::signal, event.value);
    case EventKind::unhealthy: {
      Actions actions = stop(Cause::unhealthy, SIGTERM);
      actions.insert(actions.begin(), {ActionKind::tell_failure, 1});
      return actions;
    }
    // As if a worker had failed, but all of them have to be stopped.
    case EventKind::hung: {
      const bool final = remaining_ == 0;
      Actions actions = stop(final ? Cause::unhealthy : Cause::worker_failed, SIGTERM);
      actions.insert(actions.begin(), {ActionKind::tell_failure, final ? 1 : 0});
      return actions;
    }
    case EventKind::rejoin:
      return stop(Cause::rejoin, SIGTERM);
    case EventKind::end:
      return stop(Cause::peer_failed, SIGTERM);
    case EventKind::urgent:
      signal_ = event.value;
      return kill(Cause::urgent);
    default:
      return {};
  }
}

// Tell the other nodes before this node's own workers have ended: stopping them can take the whole
// grace period.
WorkerGroup::Actions WorkerGroup::fail_here() {
  const bool final = remaining_ == 0;
  doubt_ = final && elastic_;
  const Action first =
      doubt_ ? Action{ActionKind::arm_doubt} : Action{ActionKind::tell_failure, final ? 1 : 0};
  Actions actions = one_ended(true);
  actions.insert(actions.begin(), first);
  return actions;
}

WorkerGroup::Actions WorkerGroup::on_stopping(Event event) {
  switch (event.kind) {
    case EventKind::worker_ok:
    case EventKind::worker_failed:
      return one_ended(false);
    case EventKind::stop_signal:
      // A signal turns a restart in progress into the end of the job, with a new grace period.
      // Later signals are forwarded and move no deadline.
      if (cause_ == Cause::signal) return {{ActionKind::stop_workers, event.value}};
      return stop(Cause::signal, event.value);
    // A signal outranks a watchdog: the user ended the job.
    case EventKind::unhealthy:
      if (cause_ != Cause::signal) cause_ = Cause::unhealthy;
      return {};
    case EventKind::end:
      if (cause_ == Cause::rejoin) cause_ = Cause::peer_failed;
      // The job has failed elsewhere, so the restart that this node prepares will not happen.
      if (cause_ == Cause::worker_failed) remaining_ = 0;
      return {};
    case EventKind::urgent:
      if (event.value != 0) signal_ = event.value;
      return kill(cause_ == Cause::signal ? Cause::signal : Cause::urgent);
    case EventKind::grace_over:
      return kill(cause_);
    default:
      return {};
  }
}

WorkerGroup::Actions WorkerGroup::on_killing(Event event) {
  switch (event.kind) {
    case EventKind::worker_ok:
    case EventKind::worker_failed:
      return one_ended(false);
    case EventKind::stop_signal:
    case EventKind::urgent:
      // The failed start is the story, not the signal that followed.
      if (cause_ == Cause::spawn_failed) return {};
      cause_ = Cause::signal;
      signal_ = event.value;
      return {};
    case EventKind::unhealthy:
      remaining_ = 0;
      return {};
    case EventKind::end:
      if (cause_ == Cause::rejoin) cause_ = Cause::peer_failed;
      remaining_ = 0;
      return {};
    case EventKind::grace_over:
      // SIGKILL did not end the workers: they hang in a system call. Never restart beside live
      // workers, which may hold GPUs and ports.
      abandoned_ = true;
      if (restarts()) return finish(Outcome::stuck);
      remaining_ = 0;
      return all_ended();
    default:
      return {};
  }
}

WorkerGroup::Actions WorkerGroup::on_doubt(Event event) {
  switch (event.kind) {
    case EventKind::rejoin:
      return join();
    case EventKind::doubt_over:
    case EventKind::end:
    case EventKind::stop_signal:
    case EventKind::urgent:
    case EventKind::unhealthy:
      return finish(Outcome::failed);
    default:
      return {};
  }
}

WorkerGroup::Actions WorkerGroup::on_barrier(Event event) {
  switch (event.kind) {
    case EventKind::barrier_over:
      return finish(Outcome::succeeded);
    case EventKind::rejoin:
      return join();
    case EventKind::end:
      return finish(Outcome::peer_failed);
    case EventKind::stop_signal:
    case EventKind::urgent:
      signal_ = event.value;
      return finish(Outcome::signaled);
    default:
      return {};
  }
}

WorkerGroup::Actions WorkerGroup::stop(Cause cause, int signal) {
  state_ = State::stopping;
  cause_ = cause;
  Actions actions{{ActionKind::stop_workers, signal}, {ActionKind::arm_grace}};
  if (cause != Cause::signal) return actions;
  signal_ = signal;
  actions.insert(actions.begin(), {ActionKind::tell_stop});
  return actions;
}

WorkerGroup::Actions WorkerGroup::kill(Cause cause) {
  state_ = State::killing;
  cause_ = cause;
  return {{ActionKind::kill_workers}, {ActionKind::arm_kill_limit}};
}

WorkerGroup::Actions WorkerGroup::one_ended(bool failed) {
  --live_;
  if (failed) cause_ = Cause::worker_failed;
  if (live_ == 0) return all_ended();
  if (failed) return stop(Cause::worker_failed, SIGTERM);
  return {};
}

WorkerGroup::Actions WorkerGroup::all_ended() {
  switch (cause_) {
    case Cause::none:
      state_ = State::in_barrier;
      return {{ActionKind::enter_barrier}};
    case Cause::worker_failed:
      // Stay ready for a rejoin: doubt_over or another event decides.
      if (doubt_) {
        state_ = State::in_doubt;
        return {{ActionKind::disarm}};
      }
      if (remaining_ == 0) return finish(Outcome::failed);
      return {{ActionKind::disarm}, join().front()};
    case Cause::rejoin:
      return {{ActionKind::disarm}, join().front()};
    case Cause::peer_failed:
      return finish(Outcome::peer_failed);
    case Cause::unhealthy:
      return finish(Outcome::failed);
    case Cause::spawn_failed:
      return finish(Outcome::spawn_failed);
    case Cause::signal:
    case Cause::urgent:
      return finish(Outcome::signaled);
  }
  return {};
}

WorkerGroup::Actions WorkerGroup::finish(Outcome outcome) {
  state_ = State::finished;
  outcome_ = outcome;
  return {{ActionKind::disarm}, {ActionKind::finish}};
}

}  // namespace lockstep::agent
