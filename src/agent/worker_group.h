// The life of a node's workers as a table: state x event -> state + actions. Pure: the driver
// (run.cc) feeds what happened and carries out what comes back; nothing here knows processes, time
// or text.
#pragma once

#include <vector>

namespace lockstep::agent {

enum class State { waiting, running, stopping, killing, finished };

enum class EventKind {
  begin,          // start the first attempt
  spawn_failed,   // value: how many were started before that
  worker_ok,      // one worker exited with 0
  worker_failed,  // one worker exited otherwise
  stop_signal,    // value: the signal, which ends the job
  urgent,         // end now: a second TERM or INT, or the guardian is gone
  grace_over,     // the armed timer
  unhealthy,      // a worker is stuck beyond what a restart could mend
};

struct Event {
  EventKind kind;
  int value = 0;
};

enum class Cause { none, worker_failed, signal, spawn_failed, unhealthy, urgent };

enum class Outcome {
  succeeded,
  failed,          // a worker failed and no restart was left
  signaled,        // ended by a signal while workers ran
  signaled_early,  // ... before the first start
  spawn_failed,
};

enum class ActionKind {
  start_attempt,   // purge the store, start all workers
  stop_workers,    // value: signal for every live worker's group (CONT first)
  kill_workers,    // SIGKILL
  arm_grace,       // grace_over after the shutdown timeout
  arm_kill_limit,  // grace_over after the time a kernel may take to end a killed process
  disarm,
  finish,
};

struct Action {
  ActionKind kind;
  int value = 0;
  bool operator==(const Action&) const = default;
};

class WorkerGroup {
 public:
  WorkerGroup(int nproc, int max_restarts) : nproc_(nproc), remaining_(max_restarts) {}

  std::vector<Action> on(Event event);

  State state() const { return state_; }
  Cause cause() const { return cause_; }
  int signal() const { return signal_; }
  int live() const { return live_; }
  int remaining_restarts() const { return remaining_; }
  bool stop_ordered() const { return state_ == State::stopping || state_ == State::killing; }
  bool abandoned() const { return abandoned_; }  // finished with workers that would not die
  Outcome outcome() const { return outcome_; }

 private:
  using Actions = std::vector<Action>;
  Actions begin();
  Actions stop(Cause cause, int signal);
  Actions kill(Cause cause);
  Actions one_ended(bool failed);
  Actions all_ended();
  Actions finish(Outcome outcome);
  Actions on_running(Event event);
  Actions on_stopping(Event event);
  Actions on_killing(Event event);

  int nproc_;
  int remaining_;
  int live_ = 0;
  int signal_ = 0;
  bool abandoned_ = false;
  State state_ = State::waiting;
  Cause cause_ = Cause::none;
  Outcome outcome_ = Outcome::succeeded;
};

}  // namespace lockstep::agent
