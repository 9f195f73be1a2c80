// Kills workers that an earlier run of the same job left here when its agent and guardian died.
// Their environment has LOCKSTEP_AGENT=PID.START-TIME.NAMESPACE.JOB, the first three of their
// agent; where that agent is no longer alive, a process of our job is a leftover.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

namespace lockstep::proc {

inline constexpr const char* kAgentTag = "LOCKSTEP_AGENT";

// "<pid>.<start time in clock ticks>.<pid_namespace_id()>.<job>" of this process. job: the name
// that the user gave it; empty where there is none, and then nothing finds the leftovers.
std::string agent_tag(const std::string& job);

// Kills them (SIGKILL) and returns their pids. Sees only those whose environment we may read.
std::vector<pid_t> kill_leftovers(const std::string& job);

}  // namespace lockstep::proc
