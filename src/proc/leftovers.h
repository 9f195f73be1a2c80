// Workers of an earlier run of the same job on this node whose agent and guardian were both killed.
// Every worker carries LOCKSTEP_AGENT=<pid>.<start time>.<namespace> of its agent in its
// environment; a process with our run id whose agent is no longer alive is a leftover.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

namespace lockstep::proc {

inline constexpr const char* kAgentTag = "LOCKSTEP_AGENT";

// "<pid>.<start time in clock ticks>.<pid_namespace_id()>" of this process.
std::string agent_tag();

// SIGKILLs them; returns whom. Looks only at processes whose environment we may read.
std::vector<pid_t> kill_leftovers(const std::string& run_id);

}  // namespace lockstep::proc
