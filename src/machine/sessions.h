// Finds out who works on this machine over ssh: users, and commands that clients of ours started.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

namespace lockstep::machine {

struct Process {
  pid_t pid = 0;
  pid_t parent = 0;
  std::string name;                // from /proc/PID/stat (comm)
  std::vector<std::string> words;  // the first words of its command line
};

std::vector<Process> all_processes();

// Returns how many processes below sshd are at work. Not counted: sshd's own processes, the host's
// end of a link with its parents, and commands of clients asking for facts, jobs or the lease.
// Pure.
int working_sessions(const std::vector<Process>& processes);

// Returns the listening sshd processes; their children are sessions. Pure.
std::vector<pid_t> listening_sshds(const std::vector<Process>& processes);

}  // namespace lockstep::machine
