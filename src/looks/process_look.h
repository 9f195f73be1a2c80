// The state of a process at one moment, parsed from the texts in /proc/PID. Pure.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace lockstep::looks {

// Bytes of read(), write() and page faults.
using Bytes = std::int64_t;

struct ProcessLook {
  char state = '?';               // the letter of /proc/PID/stat
  std::uint64_t start_ticks = 0;  // since boot; tells a process from a later one with the same pid
  std::int64_t cpu_ticks = 0;     // of all threads
  Bytes rss = 0;
  pid_t tracer = 0;
  std::int64_t voluntary = 0;  // context switches of the main thread
  std::int64_t involuntary = 0;
  std::int64_t main_ns = 0;  // CPU time of the main thread
  std::string wchan = {};  // the kernel function that the main thread waits in; "": hidden, or runs
  int syscall = -1;        // of the main thread; -1: runs, or unknown
  bool reads_stdin = false;  // waits in read(0, ...)
  Bytes io = 0;              // of all threads
  Bytes main_io = 0;         // of the main thread

  friend bool operator==(const ProcessLook&, const ProcessLook&) = default;
};

// Returns false if a reader of the process's memory may have to wait for the process. A thread that
// is stuck in the kernel may hold the lock of its memory map: in calls that change the map, and in
// page faults. A call that waits for a file server, such as open() or read(), holds no such lock.
bool may_read_memory(const ProcessLook& process);

// Each parser fills its part of a look from the text of one file. Missing or malformed fields leave
// the look unchanged. parse_stat() returns false unless state and start time are there.
bool parse_stat(std::string_view stat, ProcessLook& into);
void parse_status(std::string_view status, ProcessLook& into);
void parse_syscall(std::string_view syscall, ProcessLook& into);
// Returns a printable name. "": the kernel hides it, or the thread runs.
std::string parse_wchan(std::string_view wchan);
// Returns the first field of schedstat. nullopt: a kernel without scheduler statistics.
std::optional<std::int64_t> parse_schedstat(std::string_view schedstat);
std::optional<Bytes> parse_io(std::string_view io);

}  // namespace lockstep::looks
