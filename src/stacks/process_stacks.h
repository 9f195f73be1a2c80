// All Python stacks of a process, given its memory. Keeps what makes the next look cheap.
#pragma once

#include "stacks/bounded_memory.h"
#include "stacks/code_cache.h"
#include "stacks/frames.h"
#include "stacks/layout.h"
#include "stacks/reason.h"
#include "stacks/stack.h"

#include <tl/expected.hpp>

#include <memory>
#include <optional>
#include <vector>

namespace lockstep::stacks {

constexpr std::size_t kMostThreads = 1'024;

class ProcessStacks {
 public:
  // `pid`: in the innermost PID namespace of the process, as the interpreter's thread ids are.
  ProcessStacks(const Layout& layout, Address runtime, pid_t pid, const ReadLimits& limits = {});

  // Returns the stacks of all threads, at most kMostThreads, in the interpreter's order (the newest
  // thread first). ThreadStack::tid is in the PID namespace of the process.
  tl::expected<std::vector<ThreadStack>, Unreadable> read(Memory& memory);

  // Returns the stack of the main thread of the process. None: this thread does not run Python.
  tl::expected<std::optional<ThreadStack>, Unreadable> read_main(Memory& memory);

  // Checks that the interpreter's data is as the layout says.
  tl::expected<void, Unreadable> check(Memory& memory);

 private:
  struct Thread {
    Address at = 0;
    Address interpreter = 0;
    Address next = 0;
    pid_t tid = 0;
    bool is_main = false;
    bool holds_gil = false;
  };

  tl::expected<std::vector<Thread>, Unreadable> list_threads(BoundedMemory& memory) const;
  bool list_threads_once(Memory& memory, std::vector<Thread>& threads, bool& started) const;
  bool threads_of(Memory& memory, Address interpreter, std::vector<Thread>& threads) const;
  std::optional<Thread> thread_at(Memory& memory, Address at, Address interpreter,
                                  std::uint64_t main_pthread) const;
  std::uint64_t main_pthread(Memory& memory) const;
  Address gil_holder(Memory& memory, Address interpreter) const;
  ThreadStack stack_of(Memory& memory, const Thread& thread);
  bool lacks_caller(const RawStack& raw);
  std::optional<Frame> frame_of(Memory& memory, const RawFrame& raw);

  std::unique_ptr<const Layout> layout_;  // the cache refers to it
  Address runtime_;
  pid_t pid_;
  ReadLimits limits_;
  CodeCache codes_;
  std::optional<Thread> main_;  // of the last look
};

}  // namespace lockstep::stacks
