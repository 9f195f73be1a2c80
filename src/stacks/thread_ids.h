// Thread ids across PID namespaces. An interpreter notes its threads' ids as its own namespace has
// them.
#pragma once

#include <sys/types.h>

#include <map>
#include <optional>
#include <string_view>
#include <vector>

namespace lockstep::stacks {

// Returns the ids of a process or thread by PID namespace, ours first, its own last, from its
// /proc/.../status. Empty: not there.
std::vector<pid_t> ids_in_status(std::string_view status);

class ThreadIds {
 public:
  explicit ThreadIds(pid_t pid);

  pid_t inner_pid() const { return inner_pid_; }

  // Returns the id in our namespace. 0: unknown.
  pid_t outer(pid_t inner);

 private:
  void refresh();

  pid_t pid_;
  pid_t inner_pid_;
  std::map<pid_t, pid_t> outer_;
};

}  // namespace lockstep::stacks
