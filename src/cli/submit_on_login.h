// lockstep submit --on: a job of Slurm's is submitted on a login host, with the files of here.
#pragma once

#include "cli/submit_options.h"

#include <optional>
#include <string>
#include <vector>

namespace lockstep::cli {

struct LoginJob {
  std::string name;
  const SubmitWords& words;
  const SubmitOptions& options;
  std::vector<std::string> env;  // "NAME=value", for the job
};

// The exit code; nullopt: it is for this machine. Expects the handled signals blocked.
Result<std::optional<ExitCode>> submit_on_login(const LoginJob& job);

}  // namespace lockstep::cli
