// Kills workers left here by an earlier run of the same job, whose agent and guardian died. The
// workers' environment has LOCKSTEP_AGENT=PID.START-TIME.NAMESPACE.JOB, where the first three
// describe their agent. If that agent is dead, a process of the same job is a leftover.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

namespace lockstep::proc {

inline constexpr const char* kAgentTag = "LOCKSTEP_AGENT";

// Returns "<pid>.<start time in clock ticks>.<pid_namespace_id()>.<job>" for this process. job: the
// name given by the user. Leftovers of a job without a name cannot be found.
std::string agent_tag(const std::string& job);

// Kills the leftovers of `job` with SIGKILL and returns their pids. Finds only processes whose
// environment this user may read.
std::vector<pid_t> kill_leftovers(const std::string& job);

}  // namespace lockstep::proc
