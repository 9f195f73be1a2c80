// `lockstep run --container`: the same command once more, in a container of this machine.
#pragma once

#include "base/error.h"
#include "cli/exit_code.h"
#include "launch/raw_options.h"

#include <optional>
#include <string>
#include <vector>

namespace lockstep::cli {

// Without code and error, the job runs in this process: there is no container, or this process is
// the one inside.
struct Contained {
  std::optional<ExitCode> code;
  std::optional<Error> error;  // not printed yet; the code is its exit code
};

// Runs our binary with the words, a name first, in the container of the options, and returns how
// that ended. Inside the container, returns at once, in a child, with raw.container_runtime set.
// The signals must be blocked.
Contained run_contained(launch::RawOptions& raw, const std::vector<std::string>& words);

}  // namespace lockstep::cli
