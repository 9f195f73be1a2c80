// The life of a node's workers as a table: state x event -> state + actions. Pure: the driver
// (node_agent.h) feeds events and carries out the returned actions. Nothing here knows processes,
// time, other nodes' names or text.
#pragma once

#include <cstdint>
#include <vector>

namespace lockstep::agent {

enum class State {
  waiting,
  joining,  // waits until all nodes have agreed on a round
  pausing,  // a round is agreed on; its start is held back, since the attempts before were short
  running,
  stopping,
  killing,
  in_doubt,    // all workers here have ended, one with a failure, but a lost node may be to blame
  in_barrier,  // all workers here succeeded; workers of other nodes may still run
  finished,
};

enum class EventKind {
  begin,          // join the first round
  joined,         // value: restarts that the job has used up so far
  pause_over,     // the armed pause is over
  join_failed,    // the rendezvous failed for good
  spare_over,     // the job has ended, and this node was a spare
  spawn_failed,   // value: number of workers started before the failure
  worker_ok,      // one worker exited with 0
  worker_failed,  // one worker exited with another code or by a signal
  stop_signal,    // value: a signal that ends the job
  urgent,         // end now: a second TERM or INT, or the guardian died
  grace_over,     // the grace period or kill limit is over
  doubt_over,     // the armed doubt timer fired: no lost node is to blame
  unhealthy,      // a worker hangs in a way that a restart cannot mend
  hung,           // no rank runs any more: restart, if a restart is left
  rejoin,         // another node wants a new round
  end,            // the job has failed on another node
  barrier_over,
};

struct Event {
  EventKind kind;
  int value = 0;
  int limit = INT32_MAX;  // joined: smallest number of restarts that any other node allows
  bool hold = false;      // joined: pause before the start
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
  spare,        // the job has ended, and this node never took part
  failed,       // a worker of this node failed and no restart was left
  stuck,        // a worker of this node survived SIGKILL; the other nodes may go on without it
  peer_failed,  // a worker of another node failed and no restart was left
  no_rendezvous,
  signaled,        // ended by a signal while workers ran
  signaled_early,  // ended by a signal before the first start
  spawn_failed,
};

enum class ActionKind {
  join,
  arm_pause,      // feed pause_over after the restart pause
  start_attempt,  // start all workers
  tell_failure,   // tell the other nodes; value: 1 if no restart is left
  tell_stop,      // tell the other nodes that a signal ends this node's workers
  enter_barrier,
  stop_workers,    // value: the signal for every live worker's group (after SIGCONT)
  kill_workers,    // SIGKILL to every live worker's group
  arm_doubt,       // feed doubt_over after a moment
  arm_grace,       // feed grace_over after the shutdown timeout
  arm_kill_limit,  // feed grace_over after the time that a kernel may need to end a killed process
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
  // elastic: the job can go on with fewer nodes. When a node dies, workers of other nodes often
  // fail before the node is missed. The table therefore tells the last failure only if no rejoin
  // follows in a moment.
  WorkerGroup(int nproc, int max_restarts, bool elastic = false)
      : nproc_(nproc), max_restarts_(max_restarts), elastic_(elastic), remaining_(max_restarts) {}

  // Moves the table on. Returns the actions to carry out, in order. Every event is legal in every
  // state.
  std::vector<Action> on(Event event);

  State state() const { return state_; }
  Cause cause() const { return cause_; }
  int signal() const { return signal_; }
  int live() const { return live_; }
  int remaining_restarts() const { return remaining_; }
  // Returns whether another attempt follows once the workers have been stopped.
  bool restarts() const {
    return cause_ == Cause::rejoin || (cause_ == Cause::worker_failed && remaining_ > 0);
  }
  bool stop_ordered() const { return state_ == State::stopping || state_ == State::killing; }
  bool abandoned() const { return abandoned_; }  // finished although some workers survived SIGKILL
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
  bool doubt_ = false;    // the last failure has not been told yet
  bool started_ = false;  // a round was reached
  int live_ = 0;
  int signal_ = 0;
  bool abandoned_ = false;
  State state_ = State::waiting;
  Cause cause_ = Cause::none;
  Outcome outcome_ = Outcome::succeeded;
};

}  // namespace lockstep::agent
