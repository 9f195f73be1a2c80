// Runs a program whose answer is wanted (squeue, git ls-files) and waits for it, so long and for so
// much output as is allowed.
#pragma once

#include "base/error.h"
#include "proc/spawn.h"

#include <chrono>
#include <string>
#include <vector>

namespace lockstep::proc {

struct ToolLimits {
  std::chrono::milliseconds patience{10'000};
  std::size_t output = 1 << 20;  // of its standard output
};

struct ToolOutput {
  std::string out;
  std::string err;  // its first 64 KiB
  Exit exit;
};

// This process's environment: "NAME=value".
std::vector<std::string> own_environment();

// argv[0] is looked up in PATH; the program reads nothing. However it ends is no error. Errors:
// not_found/denied (it can't be run), timeout and exhausted (it was killed then).
Result<ToolOutput> tool_output(const std::vector<std::string>& argv,
                               std::vector<std::string> environment = own_environment(),
                               const ToolLimits& limits = {});

}  // namespace lockstep::proc
