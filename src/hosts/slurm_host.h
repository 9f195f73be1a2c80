// Runs Slurm's programs on a login host, over the same link as any other command.
#pragma once

#include "hosts/command_run.h"
#include "hosts/registry.h"
#include "slurm/tools.h"

#include <string>

namespace lockstep::hosts {

// Returns the function that runs Slurm's programs for a place: on this machine, or on the login
// host. A failing program is an output with its exit code; an unreachable host is an error
// (unavailable).
slurm::RunTool slurm_tools(const HostPlace& place, const RunCommand& run = over_links());

// Returns the place of a cluster's Slurm commands. where: a cluster that was added with --slurm, a
// login host, or empty or "local" for this machine. invalid_input: a cluster with several hosts.
Result<HostPlace> slurm_place(const Registry& registry, const std::string& where);

}  // namespace lockstep::hosts
