// The life of a node's workers as a table: state x event -> state + actions. Pure: the driver
// (node_agent.h) feeds what happened and carries out what comes back; nothing here knows processes,
// time, other nodes' names or text.
#pragma once

#include <cstdint>
#include <vector>

namespace lockstep::agent {

enum class State {
  waiting,
  joining,  // for all nodes to have agreed on a round
  pausing,  // the round is agreed on, its start held back: the attempts before were short
  running,
  stopping,
  killing,
  in_doubt,    // all workers here ended, one badly, but a lost node may be to blame
  in_barrier,  // all workers here ended well; those of other nodes may still run
  finished,
};

enum class EventKind {
  begin,          // join the first round
  joined,         // value: restarts that the job has used up so far
  pause_over,     // the armed timer of a start that was held back
  join_failed,    // the rendezvous can't be had
  spare_over,     // this node was a spare, and the job has ended
  spawn_failed,   // value: how many were started before that
  worker_ok,      // one worker exited with 0
  worker_failed,  // one worker exited otherwise
  stop_signal,    // value: the signal, which ends the job
  urgent,         // end now: a second TERM or INT, or the guardian is gone
  grace_over,     // the armed timer
  doubt_over,     // the other armed timer: no lost node is to blame
  unhealthy,      // a worker is stuck beyond what a restart could mend
  rejoin,         // another node asks for a new round
  end,            // the job has failed elsewhere
  barrier_over,
};

struct Event {
  EventKind kind;
  int value = 0;
  int limit = INT32_MAX;  // joined: restarts that any of the other nodes allows
  bool hold = false;      // joined: the start is to be held back for a while
};

enum class Cause {
  none,
  worker_failed,
  rejoin,
  peer_failed,
  signal,
  spawn_failed,
  unhealthy,
  urgent
};

enum class Outcome {
  succeeded,
  spare,        // the job has ended, and this node never had a part in it
  failed,       // a worker failed and no restart was left
  peer_failed,  // ... on another node
  no_rendezvous,
  signaled,        // ended by a signal while workers ran
  signaled_early,  // ... before the first start
  spawn_failed,
};

enum class ActionKind {
  join,
  arm_pause,      // pause_over after the pause that was asked for
  start_attempt,  // start all workers
  tell_failure,   // to the other nodes; value: 1 where no restart is left
  tell_stop,      // to the other nodes: a signal ends the workers of this one
  enter_barrier,
  stop_workers,    // value: signal for every live worker's group (CONT first)
  kill_workers,    // SIGKILL
  arm_doubt,       // doubt_over in a moment
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
  // elastic: the job may go on with fewer nodes. When one dies, workers of the others often fail
  // before it is missed: so the last failure is told only when no rejoin has come in a moment.
  WorkerGroup(int nproc, int max_restarts, bool elastic = false)
      : nproc_(nproc), max_restarts_(max_restarts), elastic_(elastic), remaining_(max_restarts) {}

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
  Actions join();
  Actions agreed(const Event& joined);
  Actions begin();
  Actions fail_here();
  Actions stop(Cause cause, int signal);
  Actions kill(Cause cause);
  Actions one_ended(bool failed);
  Actions all_ended();
  Actions finish(Outcome outcome);
  Actions on_state(Event event);
  Actions on_joining(Event event);
  Actions on_pausing(Event event);
  Actions on_running(Event event);
  Actions on_stopping(Event event);
  Actions on_killing(Event event);
  Actions on_doubt(Event event);
  Actions on_barrier(Event event);

  int nproc_;
  int max_restarts_;
  bool elastic_;
  int remaining_;
  bool doubt_ = false;    // the last failure is not told yet
  bool started_ = false;  // a round was reached
  int live_ = 0;
  int signal_ = 0;
  bool abandoned_ = false;
  State state_ = State::waiting;
  Cause cause_ = Cause::none;
  Outcome outcome_ = Outcome::succeeded;
};

}  // namespace lockstep::agent
