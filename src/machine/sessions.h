// Who works on this machine by ssh: people, and commands that clients of ours have started there.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

namespace lockstep::machine {

struct Process {
  pid_t pid = 0;
  pid_t parent = 0;
  std::string name;                // comm
  std::vector<std::string> words;  // its command line, the first few
};

std::vector<Process> all_processes();

// How many processes below sshd are at work: not sshd's own, not the host's end of a link and what
// leads to it, and not what clients only ask (facts, jobs, the lease). Pure.
int working_sessions(const std::vector<Process>& processes);

// sshd's that listen: their children are sessions. Pure.
std::vector<pid_t> listening_sshds(const std::vector<Process>& processes);

}  // namespace lockstep::machine
