// The process the user started becomes the guardian; the agent is its child. Whichever of the two
// dies, the other ends every worker and all that descends from them. The guardian passes signals
// on, waits, sweeps, and exits with the agent's code; it holds no state and runs no loop.
#pragma once

#include "io/fd.h"
#include "proc/cgroup.h"

#include <optional>

namespace lockstep::proc {

// What the agent keeps of its guardian.
struct Guardian {
  pid_t pid = -1;
  io::Fd pidfd;  // readable when the guardian is gone
};

// A signal passed on by the guardian carries this value (sigqueue), so that the agent can tell it
// from one sent to the agent itself: a scheduler that signals every process of a job means it once.
inline constexpr int kForwardedMark = 0x10c57e9;

// Splits this process in two and returns in the agent; the guardian never returns. Call early: the
// guardian's memory is what this process has now, and signals must be blocked already.
// agent_dies_with_us: the kernel kills the agent with the guardian (for the PID-namespace rung,
// where the agent's end is enough).
Result<Guardian> split_off_guardian(const std::optional<Cgroup>& cgroup, bool agent_dies_with_us);

}  // namespace lockstep::proc
