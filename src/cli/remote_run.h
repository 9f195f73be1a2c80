// lockstep run --on: the same run, on other machines.
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
  std::string job;    // its id; empty: it was not started
  bool left = false;  // it goes on without us
  bool gone = false;  // a host will not come back
  // Then: for how long it can have ended without our hearing of it.
  std::chrono::milliseconds silent{0};
  bool canceled = false;  // by a person
  std::string why = {};   // it was not started
};
RemoteOutcome run_job_on_hosts(const Call& call, const RemoteOptions& options);

// What is seen to be wrong with a job before there are hosts: nothing is rented for it. outputs:
// places of the project that are to come back.
Status check_job(const Call& call, const RemoteOptions& options,
                 const std::vector<std::string>& outputs);

// Follows a job that another process of ours has started, from its first line on. nullopt: it had
// not come that far, and nothing of it is left.
Result<std::optional<RemoteOutcome>> follow_started_job(const Call& call,
                                                        const RemoteOptions& options,
                                                        const std::string& job);

// call: of `lockstep run`, with --on.
ExitCode run_on_hosts(const Call& call, const RemoteOptions& options);

// One line for the first option that is of use only with --on; empty: none was given.
std::string needs_on(const Parsed& parsed);

}  // namespace lockstep::cli
