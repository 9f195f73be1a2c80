// Reads the stacks of main threads, for the looker, and keeps a reader for each process.
#pragma once

#include "stacks/stack.h"
#include "stacks/stack_reader.h"

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::looks {

// Returns whether the reading of a stack had to wait for its process. On a loaded machine a reader
// that never waits is slow, too, because other processes run in between. waits: the voluntary
// context switches meanwhile.
bool was_held_up(std::chrono::steady_clock::duration took, long waits);

// Returns for how many looks the memory of a process is left alone after so many readings in a row
// that had to wait. A fork holds up one reading, a process that is stuck all of them.
int looks_to_pause(int holds);

class StackSource {
 public:
  // Returns nullopt if the stack is not readable.
  std::optional<stacks::ThreadStack> main_stack(pid_t pid);
  // Returns the stacks of all threads, for evidence. Empty: not readable.
  std::vector<stacks::ThreadStack> all_stacks(pid_t pid);
  // Why the last stack of a process was not readable. "": it was.
  std::string_view reason(pid_t pid) const;
  // Whether the last reading had to wait for the process: its memory is left alone for some looks.
  bool held_up(pid_t pid) const;
  // Forgets all other processes.
  void keep_only(const std::set<pid_t>& pids);

 private:
  struct Entry {
    std::optional<stacks::StackReader> reader = {};
    std::string reason = {};
    // Looks until the next try: what is not Python now may become Python by exec().
    int pause = 0;
    int tries = 0;
    bool held_up = false;  // the pause is for this reason
    int holds = 0;         // readings in a row that had to wait
  };

  std::map<pid_t, Entry> readers_;
};

}  // namespace lockstep::looks
