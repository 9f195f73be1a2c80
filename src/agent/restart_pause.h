// Holds a restart back where the attempts before it were short (--restart-backoff).
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
  // A worker has failed or the workers are stopped; of several calls the first one counts.
  void attempt_ended() { backoff_.ended(io::Clock::now()); }

  // All nodes have agreed on a round: whether its start is to wait, which is said. Their heartbeats
  // go on, and each of them waits by itself. A round that is not counted as a restart, since a node
  // came or went, is nobody's crash and begins at once.
  bool agreed(bool counted);
  bool counted() const { return counted_; }  // the last round
  void start(std::function<void()> then) { timer_.start(length_, std::move(then)); }
  void cancel() { timer_.cancel(); }

 private:
  RestartBackoff backoff_;
  RestartBackoff::Duration length_{};
  bool counted_ = false;
  io::Timer timer_;
};

}  // namespace lockstep::agent
