// Ends what workers left behind, a short turn at a time, so that the loop goes on meanwhile
// (heartbeats, signals). Names what even SIGKILL can't end.
#pragma once

#include "io/loop.h"
#include "proc/containment.h"

#include <functional>

namespace lockstep::agent {

class LeftoverSweep {
 public:
  LeftoverSweep(io::Loop& loop, const proc::Containment& containment)
      : containment_(containment), timer_(loop) {}

  // Calls back once, perhaps at once, when nothing is left or after `limit`; then the rest has been
  // named. Replaces a sweep under way.
  void start(io::Duration limit, std::function<void()> then);
  void cancel() { timer_.cancel(); }

 private:
  void sweep(io::TimePoint deadline, std::function<void()> then);

  const proc::Containment& containment_;
  io::Timer timer_;
};

}  // namespace lockstep::agent
