// Workers stuck in the kernel: state D (uninterruptible sleep), which no signal ends.
#pragma once

#include "io/loop.h"

#include <sys/types.h>

#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace lockstep::agent {

// The state letter of a /proc/<pid>/stat line; the command in it may hold blanks and brackets.
std::optional<char> parse_stat_state(std::string_view stat);

// nullopt: the process is gone. `proc` is "/proc" but in tests.
std::optional<char> process_state(const std::string& proc, pid_t pid);

// What keeps a process that would not die, to go after "it is": "waiting in nfs_wait_bit_killable".
// Many kernels, and containers, do not say where a process waits; then it is its state.
std::string what_holds(const std::string& proc, pid_t pid);

// Remembers since when each process has been seen in state D without a break.
class DStateTracker {
 public:
  explicit DStateTracker(io::Duration limit) : limit_(limit) {}

  // True once the process has been in D for the limit or longer.
  bool observe(pid_t pid, std::optional<char> state, io::TimePoint now);
  void forget(pid_t pid) { since_.erase(pid); }

 private:
  io::Duration limit_;
  std::map<pid_t, io::TimePoint> since_;
};

}  // namespace lockstep::agent
