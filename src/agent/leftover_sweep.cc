// Sweeps in short turns on the event loop.
#include "agent/leftover_sweep.h"

#include "agent/d_state.h"
#include "base/log.h"

#include <utility>

namespace lockstep::agent {
namespace {
// Longest time that one turn may block the loop: heartbeats and signals wait meanwhile.
constexpr std::chrono::milliseconds kTurn{50};
constexpr std::chrono::milliseconds kPause{20};
}  // namespace

void LeftoverSweep::start(io::Duration limit, std::function<void()> then) {
  timer_.cancel();
  sweep(io::Clock::now() + limit, std::move(then));
}

void LeftoverSweep::sweep(io::TimePoint deadline, std::function<void()> then) {
  const proc::Sweep sweep_done = containment_.sweep(kTurn);
  // Not all killed processes are gone yet. Let the loop run, then look again.
  if (!sweep_done.unkillable.empty() && io::Clock::now() < deadline)
    return timer_.start(kPause, [this, deadline, then = std::move(then)]() mutable {
      sweep(deadline, std::move(then));
    });
  for (const pid_t pid : sweep_done.unkillable)
    log::error("process {} ({}) can't be killed: it is {}", pid, proc::command_of(pid),
               what_holds("/proc", pid));
  then();
}

}  // namespace lockstep::agent
