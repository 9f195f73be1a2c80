// Slurm's programs on a login host, over the same link as any other command.
#pragma once

#include "hosts/host_link.h"
#include "hosts/registry.h"
#include "slurm/tools.h"

#include <string>

namespace lockstep::hosts {

// Finds the place for a cluster's Slurm commands: this machine, or the login host.
slurm::RunTool slurm_tools(const HostPlace& place);

// where: a cluster that was added with --slurm, a login host, or empty or "local": this machine.
Result<HostPlace> slurm_place(const Registry& registry, const std::string& where);

}  // namespace lockstep::hosts
