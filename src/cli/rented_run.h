// lockstep run --on-demand: machines are rented for one job and given back at its end.
#pragma once

#include "cli/on_demand_options.h"
#include "cli/remote_options.h"
#include "cli/subcommand.h"

namespace lockstep::cli {

// call: of `lockstep run`, with --on-demand. The exit code is the job's, unless there were no
// machines.
ExitCode run_on_rented(const Call& call, const RemoteOptions& remote,
                       const OnDemandOptions& options);

// "--name" of the first option that is of use only with --on-demand; empty: none was given.
std::string needs_on_demand(const Parsed& parsed);

}  // namespace lockstep::cli
