// Workers stuck in the kernel: state D (uninterruptible sleep), which not even SIGKILL ends.
#pragma once

#include "io/loop.h"

#include <sys/types.h>

#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace lockstep::agent {

// Returns the state letter of a /proc/PID/stat line, whose command field may contain blanks and
// parentheses. nullopt: malformed.
std::optional<char> parse_stat_state(std::string_view stat);

// Returns the state letter of a process. nullopt: the process is gone. `proc` is "/proc" outside of
// tests.
std::optional<char> process_state(const std::string& proc, pid_t pid);

// Says why a process does not die, for use after "it is": "waiting in nfs_wait_bit_killable". Many
// kernels, and most containers, hide where a process waits. The text then names the process state.
std::string what_holds(const std::string& proc, pid_t pid);

// Tracks since when each process has been in state D without a break.
class DStateTracker {
 public:
  explicit DStateTracker(io::Duration limit) : limit_(limit) {}

  // Records the state seen at `now`. Returns true once the process has been in state D for the
  // limit or longer.
  bool observe(pid_t pid, std::optional<char> state, io::TimePoint now);
  void forget(pid_t pid) { since_.erase(pid); }

 private:
  io::Duration limit_;
  std::map<pid_t, io::TimePoint> since_;
};

}  // namespace lockstep::agent
