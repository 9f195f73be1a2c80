// Reads looks from /proc. The only file of this room that touches the machine.
#pragma once

#include "looks/process_look.h"

#include <sys/types.h>

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace lockstep::looks {

class ProcessReader {
 public:
  // proc: "/proc" outside of tests.
  explicit ProcessReader(std::string proc = "/proc") : proc_(std::move(proc)) {}

  // Returns nullopt if the process is gone. Files that the kernel refuses leave their part empty.
  std::optional<ProcessLook> read(pid_t pid) const;

  // Reads only what tells whether a process moves, for the many children of ranks. The kernel
  // function is read for a process that is stuck in one.
  std::optional<ProcessLook> read_child(pid_t pid) const;

  // Returns the children of a process, at most `most`; those of its main thread only, unless
  // all_threads.
  std::vector<pid_t> children_of(pid_t pid, std::size_t most, bool all_threads) const;
  // Returns the descendants of a process, parents before children, at most `most`. Looks at the
  // children of main threads only, unless all_threads: a process may have thousands of threads.
  std::vector<pid_t> descendants(pid_t root, std::size_t most, bool all_threads) const;

 private:
  std::string text_of(pid_t pid, const char* file) const;
  void read_times(pid_t pid, ProcessLook& into) const;

  std::string proc_;
};

}  // namespace lockstep::looks
