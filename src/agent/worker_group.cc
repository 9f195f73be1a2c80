#include "agent/worker_group.h"

#include <signal.h>

namespace lockstep::agent {

std::vector<Action> WorkerGroup::on(Event event) {
  switch (state_) {
    case State::waiting:
      if (event.kind == EventKind::begin) return begin();
      if (event.kind == EventKind::stop_signal || event.kind == EventKind::urgent) {
        signal_ = event.value;
        return finish(Outcome::signaled_early);
      }
      return {};
    case State::running:
      return on_running(event);
    case State::stopping:
      return on_stopping(event);
    case State::killing:
      return on_killing(event);
    case State::finished:
      return {};
  }
  return {};
}

WorkerGroup::Actions WorkerGroup::begin() {
  state_ = State::running;
  cause_ = Cause::none;
  live_ = nproc_;
  return {{ActionKind::start_attempt}};
}

WorkerGroup::Actions WorkerGroup::on_running(Event event) {
  switch (event.kind) {
    case EventKind::worker_ok:
      return one_ended(false);
    case EventKind::worker_failed:
      return one_ended(true);
    case EventKind::spawn_failed:
      live_ = event.value;
      cause_ = Cause::spawn_failed;
      return live_ == 0 ? all_ended() : kill(Cause::spawn_failed);
    case EventKind::stop_signal:
      return stop(Cause::signal, event.value);
    case EventKind::unhealthy:
      return stop(Cause::unhealthy, SIGTERM);
    case EventKind::urgent:
      signal_ = event.value;
      return kill(Cause::urgent);
    default:
      return {};
  }
}

WorkerGroup::Actions WorkerGroup::on_stopping(Event event) {
  switch (event.kind) {
    case EventKind::worker_ok:
    case EventKind::worker_failed:
      return one_ended(false);
    case EventKind::stop_signal:
      // A signal turns a restart in progress into the end of the job, with a fresh grace period;
      // the next ones are passed on and change no deadline.
      if (cause_ == Cause::signal) return {{ActionKind::stop_workers, event.value}};
      return stop(Cause::signal, event.value);
    case EventKind::unhealthy:
      if (cause_ != Cause::signal) cause_ = Cause::unhealthy;
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
      if (cause_ == Cause::spawn_failed) return {};
      cause_ = Cause::signal;
      signal_ = event.value;
      return {};
    case EventKind::unhealthy:
      remaining_ = 0;
      return {};
    case EventKind::grace_over:
      // SIGKILL did not end them: a call into the kernel that does not return. No restart beside
      // them.
      abandoned_ = true;
      remaining_ = 0;
      return all_ended();
    default:
      return {};
  }
}

WorkerGroup::Actions WorkerGroup::stop(Cause cause, int signal) {
  state_ = State::stopping;
  cause_ = cause;
  if (cause == Cause::signal) signal_ = signal;
  return {{ActionKind::stop_workers, signal}, {ActionKind::arm_grace}};
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
      return finish(Outcome::succeeded);
    case Cause::worker_failed: {
      if (remaining_ == 0) return finish(Outcome::failed);
      --remaining_;
      Actions actions = begin();
      actions.insert(actions.begin(), {ActionKind::disarm});
      return actions;
    }
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
