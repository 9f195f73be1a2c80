// lockstep run --on: runs a job on other machines.
#pragma once

#include "cli/remote_options.h"
#include "cli/subcommand.h"

#include <chrono>
#include <optional>
#include <string>
#include <vector>

namespace lockstep::cli {

struct RemoteOutcome {
  int code = 0;       // the exit code
  std::string job;    // the job's id; empty: the job was not started
  bool left = false;  // the job goes on without this process
  bool gone = false;  // a host will not come back
  // With `gone`: how long ago the job may have ended without this process hearing of it.
  std::chrono::milliseconds silent{0};
  bool canceled = false;  // canceled by a person
  std::string why = {};   // why the job was not started
};
// Brings the project, starts the job and follows it. Prints errors.
RemoteOutcome run_job_on_hosts(const Call& call, const RemoteOptions& options);

// Checks the job before there are hosts: nothing must be rented for a job that cannot start.
// outputs: places in the project to bring back.
Status check_job(const Call& call, const RemoteOptions& options,
                 const std::vector<std::string>& outputs);

// Follows a job started by another process of ours, from the first line on. nullopt: the job did
// not start, and nothing is left of the job.
Result<std::optional<RemoteOutcome>> follow_started_job(const Call& call,
                                                        const RemoteOptions& options,
                                                        const std::string& job);

// Runs `lockstep run` with --on.
ExitCode run_on_hosts(const Call& call, const RemoteOptions& options);

// Returns "--name" of the first given option that needs --on; empty: none was given.
std::string needs_on(const Parsed& parsed);

}  // namespace lockstep::cli
