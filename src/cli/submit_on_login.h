// lockstep submit --on: brings the project to a login host and submits the job there.
#pragma once

#include "cli/submit_options.h"
#include "jobs/job_book.h"
#include "jobs/on_slurm/login_submit.h"

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

// Prints the number of a submitted job, and follows the job if the options say so. The job goes on
// if this command is stopped.
Result<ExitCode> tell_and_follow(const jobs::JobBook& book, const jobs::KnownJob& known,
                                 const jobs::on_slurm::SubmittedThere& job,
                                 const SubmitOptions& options);

// Submits the job, or prints what would be submitted, and returns the exit code. nullopt: the
// cluster of --on is this machine's own Slurm. Call with the handled signals blocked.
Result<std::optional<ExitCode>> submit_on_login(const LoginJob& job);

}  // namespace lockstep::cli
