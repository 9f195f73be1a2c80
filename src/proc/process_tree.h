// Finds descendants of a process in /proc and ends them. After a double fork the kernel makes the
// nearest subreaper the parent, so the tree below a subreaper is complete.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <set>
#include <string>
#include <vector>

namespace lockstep::proc {

// Makes this process the new parent of orphaned descendants.
void become_subreaper();

// Returns the direct children of a process.
std::vector<pid_t> children_of(pid_t pid);
// Returns all descendants of `root`, parents before children, without the `spared` ones and their
// descendants.
std::vector<pid_t> descendants_of(pid_t root, const std::set<pid_t>& spared = {});
// Returns the descendants of this process.
std::vector<pid_t> descendants(const std::set<pid_t>& spared = {});

// Returns the command line of a process, shortened for messages ("python3 train.py"), or the name
// of a process without a command line.
std::string command_of(pid_t pid);

struct Sweep {
  int killed = 0;                 // number of processes that got SIGKILL
  std::vector<pid_t> unkillable;  // alive after the limit (uninterruptible sleep)
};
// Sends SIGKILL to all descendants except `spared` until none is left, and reaps new children of
// this process. Blocks until the kernel has ended them, at most for `limit`. A fork bomb cannot
// escape: the next round finds processes forked during this one.
Sweep sweep_descendants(const std::set<pid_t>& spared, std::chrono::milliseconds limit);

// Does the same below `root`, a child that reaps its own children (the init of a namespace).
Sweep sweep_below(pid_t root, std::chrono::milliseconds limit);

}  // namespace lockstep::proc
