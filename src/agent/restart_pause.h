// Holds back a restart after a series of short attempts (--restart-backoff).
#pragma once

#include "agent/restart_backoff.h"
#include "io/loop.h"

#include <functional>

namespace lockstep::agent {

class RestartPause {
 public:
  RestartPause(io::Loop& loop, RestartBackoff::Duration longest)
      : backoff_(longest), timer_(loop) {}

  void attempt_started() { backoff_.started(io::Clock::now()); }
  // A worker has failed, or the workers are being stopped. Only the first call of an attempt
  // counts.
  void attempt_ended() { backoff_.ended(io::Clock::now()); }

  // Call when all nodes have agreed on a round. Returns whether this node must pause before it
  // starts the round, and logs the pause. Heartbeats go on during the pause, and each node waits by
  // itself. A round that is not counted as a restart, because a node joined or left, begins at
  // once: no script has crashed.
  bool agreed(bool counted);
  bool counted() const { return counted_; }  // of the last round
  void start(std::function<void()> then) { timer_.start(length_, std::move(then)); }
  void cancel() { timer_.cancel(); }

 private:
  RestartBackoff backoff_;
  RestartBackoff::Duration length_{};
  bool counted_ = false;
  io::Timer timer_;
};

}  // namespace lockstep::agent
