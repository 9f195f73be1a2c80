// lockstep run --on: runs a job on other machines.
#pragma once

#include "cli/remote_options.h"
#include "cli/subcommand.h"
#include "jobs/attempt.h"

#include <optional>
#include <string>
#include <vector>

namespace lockstep::cli {

// Brings the project, starts the job and follows it. Prints errors.
jobs::AttemptEnd run_job_on_hosts(const Call& call, const RemoteOptions& options);

// Checks the job before there are hosts: nothing must be rented for a job that cannot start.
Status check_job(const Call& call, const RemoteOptions& options);

// Follows a job started by another process of ours, from the first line on. nullopt: the job runs
// nowhere, and may begin again under this id.
Result<std::optional<jobs::AttemptEnd>> follow_started_job(const Call& call,
                                                           const RemoteOptions& options,
                                                           const std::string& job);

// Runs `lockstep run` with --on.
ExitCode run_on_hosts(const Call& call, const RemoteOptions& options);

// Returns "--name" of the first given option that needs --on; empty: none was given.
std::string needs_on(const Parsed& parsed);

}  // namespace lockstep::cli
