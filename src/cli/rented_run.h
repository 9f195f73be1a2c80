// lockstep run --on-demand: rents machines for one job and terminates them at its end.
#pragma once

#include "cli/on_demand_options.h"
#include "cli/remote_options.h"
#include "cli/subcommand.h"
#include "jobs/rented/owner_talk.h"

namespace lockstep::cli {

// Runs `lockstep run` with --on-demand. Returns the job's exit code, unless renting failed.
ExitCode run_on_rented(const Call& call, const RemoteOptions& remote,
                       const OnDemandOptions& options);

// On the host that owns the rental of a client's job: records the job and starts its course, which
// rents the machines. Only shows the plan if the words have --print.
Result<ExitCode> begin_for_client(const Call& call, const jobs::rented::OwnerRequest& request);

// Returns "--name" of the first given option that needs --on-demand; empty: none was given.
std::string needs_on_demand(const Parsed& parsed);

}  // namespace lockstep::cli
