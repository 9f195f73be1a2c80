// Finds in /proc which process descends from which, and ends them. One that left its parent by a
// double fork comes back to the nearest subreaper, so the tree of a subreaper is complete.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <set>
#include <string>
#include <vector>

namespace lockstep::proc {

void become_subreaper();

std::vector<pid_t> children_of(pid_t pid);
// All descendants of `root` except `spared` ones and those below them; parents before children.
std::vector<pid_t> descendants_of(pid_t root, const std::set<pid_t>& spared = {});
// The same for this process.
std::vector<pid_t> descendants(const std::set<pid_t>& spared = {});

// Command line of a process, shortened, for messages ("python3 train.py"); its name if it has none.
std::string command_of(pid_t pid);

struct Sweep {
  int killed = 0;                 // processes that got SIGKILL
  std::vector<pid_t> unkillable;  // still there when the time was over (uninterruptible sleep)
};
// Sends SIGKILL to all descendants but `spared` until none is left, and reaps those that become our
// children. Blocks as long as the kernel takes to end them, `limit` at most. A fork bomb does not
// escape: a process that forks while we look is found in the next round.
Sweep sweep_descendants(const std::set<pid_t>& spared, std::chrono::milliseconds limit);

// The same for what is below `root`, a child of ours that reaps its own (a namespace's init).
Sweep sweep_below(pid_t root, std::chrono::milliseconds limit);

}  // namespace lockstep::proc
