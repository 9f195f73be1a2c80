// Where a thread is in its native code, parsed from the texts in /proc/PID/task/TID. Pure.
#pragma once

#include "stacks/memory.h"

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace lockstep::stacks {

// From the file syscall.
struct ThreadPoint {
  bool runs = false;  // then nothing else is known
  int call = -1;      // number of the system call; -1: waits outside of one, as in a page fault
  Address stack = 0;  // the stack pointer
  Address at = 0;     // the program counter
  friend bool operator==(const ThreadPoint&, const ThreadPoint&) = default;
};
// nullopt: malformed.
std::optional<ThreadPoint> parse_point(std::string_view syscall);

// From the file stat.
struct ThreadState {
  std::string name;  // as the kernel knows it, printable
  char state = '?';  // "S", "R", "D"
};
std::optional<ThreadState> parse_thread_state(std::string_view stat);

// "poll", "page fault": what a thread waits in; "": not known.
std::string call_words(const ThreadPoint& point, char state);

// Returns whether a thread may hold the lock of its process's memory map for long. Who reads the
// memory then waits, too. state: of the thread; point: nullopt: not known.
bool may_hold_map(char state, const std::optional<ThreadPoint>& point);

constexpr std::size_t kCallBytes = 7;
// Returns whether a call instruction of x86-64 ends where these bytes end.
bool ends_with_call(std::span<const std::byte, kCallBytes> code);

}  // namespace lockstep::stacks
