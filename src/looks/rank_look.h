// The result of a look at a rank.
#pragma once

#include "looks/process_look.h"
#include "stacks/stack.h"

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace lockstep::looks {

using Millis = std::chrono::milliseconds;

// A descendant of a rank: a loader, a compiler, a helper.
struct ChildLook {
  pid_t pid = 0;
  ProcessLook process = {};
  std::optional<stacks::ThreadStack> stack = {};  // of the main thread; nullopt: not read
};

struct RankLook {
  int rank = 0;
  pid_t pid = 0;
  std::optional<ProcessLook> process = {};        // nullopt: the rank has ended
  std::optional<stacks::ThreadStack> stack = {};  // of the main thread; nullopt: not read
  bool was_read = false;  // a stack of this process has been read: it runs Python
  std::vector<ChildLook> children = {};
  // The rank has written a dump for this agent since the last look, and a line about the dump.
  bool dumps = false;
  std::int64_t output_bytes = 0;  // printed so far
  Millis output_age = {};         // since the last output
  std::string last_line = {};
};

}  // namespace lockstep::looks
