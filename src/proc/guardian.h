// Splits the process that the user started into guardian and agent, its child. Whichever of the two
// dies, the other ends every worker and all their descendants. The guardian forwards signals,
// waits, sweeps, and exits with the agent's code. It holds no state and runs no loop.
#pragma once

#include "io/fd.h"
#include "proc/cgroup.h"

#include <optional>

namespace lockstep::proc {

// The agent's view of its guardian.
struct Guardian {
  pid_t pid = -1;
  io::Fd pidfd;  // readable when the guardian is gone
};

// A forwarded signal carries this value (sigqueue). The agent can thus recognise the copy of a
// direct signal: a scheduler which signals every process of a job means a single signal.
inline constexpr int kForwardedMark = 0x10c57e9;

// Splits this process in two and returns in the agent. The guardian never returns. Call early, with
// signals already blocked: the guardian keeps this process's present memory. agent_dies_with_us:
// the kernel kills the agent with the guardian. For the PID-namespace rung, where the agent's death
// ends all workers.
Result<Guardian> split_off_guardian(const std::optional<Cgroup>& cgroup, bool agent_dies_with_us);

}  // namespace lockstep::proc
