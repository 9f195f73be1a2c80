// The Python stacks of another process, read from its memory. The process is not stopped and gets
// no signal, and it makes no difference what it does: its stacks are readable too while it is
// stopped, sleeps in the kernel, or holds the GIL.
//
// Known are release builds of CPython 3.8 to 3.14 on x86-64 and aarch64. The kernel allows reading
// a process of the same user that is dumpable, and with Yama only descendants; other readers need
// CAP_SYS_PTRACE.
//
// Calls block for the time of a few system calls, at most for ReadLimits::time. The exception:
// they wait while a thread of the process changes its memory map (remote_memory.h), without a limit
// if that thread waits for a dead file server.
#pragma once

#include "stacks/process_stacks.h"
#include "stacks/reason.h"
#include "stacks/remote_memory.h"
#include "stacks/stack.h"
#include "stacks/thread_ids.h"

#include <tl/expected.hpp>

#include <sys/types.h>

#include <memory>
#include <optional>
#include <vector>

namespace lockstep::stacks {

class StackReader {
 public:
  // Finds the interpreter of a process.
  static tl::expected<StackReader, Reason> attach(pid_t pid);

  // Returns the stacks of all threads, the newest first, at most kMostThreads. After a failure with
  // the kind `changed`, attach again: the process may have started another program.
  tl::expected<std::vector<ThreadStack>, Reason> read();

  // Returns the stack of the main thread. None: this thread does not run Python.
  tl::expected<std::optional<ThreadStack>, Reason> read_main();

 private:
  StackReader(pid_t pid, ThreadIds ids, ProcessStacks stacks);

  Reason reason(Unreadable kind) const;

  pid_t pid_;
  RemoteMemory memory_;
  ThreadIds ids_;
  ProcessStacks stacks_;
};

}  // namespace lockstep::stacks
