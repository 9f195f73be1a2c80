// `lockstep run --on-demand --guard HOST`: brings the project to HOST, begins the job there, and
// shows it. HOST owns the rental: it rents, begins the job again on other machines, and terminates.
#pragma once

#include "cli/on_demand_options.h"
#include "cli/remote_options.h"
#include "cli/subcommand.h"
#include "rent/on_demand.h"

#include <string>

namespace lockstep::cli {

// Returns the job's exit code, unless the job could not begin. The request was checked. The handled
// signals must be blocked.
Result<ExitCode> run_at_owner(const Call& call, const RemoteOptions& remote,
                              const OnDemandOptions& options, rent::OnDemand& world,
                              const std::string& cluster);

}  // namespace lockstep::cli
