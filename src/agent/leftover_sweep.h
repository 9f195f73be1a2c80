// Ends the processes left behind by workers. Works in short turns, so the loop goes on (heartbeats,
// signals). Names processes that survive SIGKILL.
#pragma once

#include "io/loop.h"
#include "proc/containment.h"

#include <functional>

namespace lockstep::agent {

class LeftoverSweep {
 public:
  LeftoverSweep(io::Loop& loop, const proc::Containment& containment)
      : containment_(containment), timer_(loop) {}

  // Starts a sweep and replaces a running one. Calls back once, possibly before returning, when no
  // process is left or after `limit`. By then the remaining processes have been named in the log.
  void start(io::Duration limit, std::function<void()> then);
  void cancel() { timer_.cancel(); }

 private:
  void sweep(io::TimePoint deadline, std::function<void()> then);

  const proc::Containment& containment_;
  io::Timer timer_;
};

}  // namespace lockstep::agent
