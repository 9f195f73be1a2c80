// Runs a program for its output (squeue, git ls-files), within limits of time and size.
#pragma once

#include "base/error.h"
#include "proc/spawn.h"

#include <chrono>
#include <string>
#include <vector>

namespace lockstep::proc {

struct ToolLimits {
  std::chrono::milliseconds patience{10'000};
  std::size_t output = 1 << 20;  // bytes of standard output
  // Ends a program at the time limit by SIGTERM, or a second later by SIGKILL, and returns what the
  // program has printed. Without this, such a program is killed and an error.
  bool keep_late = false;
};

struct ToolOutput {
  std::string out;
  std::string err;  // the first 64 KiB
  Exit exit;
  bool late = false;  // see ToolLimits::keep_late
};

// Returns this process's environment as "NAME=value".
std::vector<std::string> own_environment();

// Runs argv[0], found in PATH, with empty standard input. The program's own failure is not an
// error: see ToolOutput::exit. Fails with not_found or denied if the program cannot be run, and
// with timeout or exhausted after killing it.
Result<ToolOutput> tool_output(const std::vector<std::string>& argv,
                               std::vector<std::string> environment = own_environment(),
                               const ToolLimits& limits = {});

}  // namespace lockstep::proc
