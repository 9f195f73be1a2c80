// Workers of an earlier run of the same job on this node whose agent and guardian were both killed.
// Every worker carries LOCKSTEP_AGENT=<pid>.<start time>.<namespace>.<job> in its environment, the
// first three of its agent; a process of our job whose agent is no longer alive is a leftover.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

namespace lockstep::proc {

inline constexpr const char* kAgentTag = "LOCKSTEP_AGENT";

// "<pid>.<start time in clock ticks>.<pid_namespace_id()>.<job>" of this process. job: the name
// that the user gave it; empty where there is none, and then nothing finds the leftovers.
std::string agent_tag(const std::string& job);

// SIGKILLs them; returns whom. Looks only at processes whose environment we may read.
std::vector<pid_t> kill_leftovers(const std::string& job);

}  // namespace lockstep::proc
