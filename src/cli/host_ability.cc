// lockstep host-ability: prints what compiled code may use on this node. `lockstep wheel` starts
// this on the nodes of a Slurm job. People do not call this.
#include "base/environment.h"
#include "cli/subcommand.h"
#include "host/identity.h"
#include "setup/node_ability.h"

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>

namespace lockstep::cli {
namespace {

Result<ExitCode> host_ability_command(const Call& /*call*/) {
  // srun has copied this binary to the node for this question alone (project/wheel_afar.cc). Remove
  // the copy, or every question would leave one on the node's disk.
  if (const char* carried = std::getenv("LOCKSTEP_CARRIED")) unlink(carried);
  // Slurm's name of the node, which the administrator may choose freely.
  const std::string node = env_text("SLURMD_NODENAME");
  const std::string name = node.empty() ? host::hostname() : node;
  std::puts(setup::ability_text(setup::ability_here(name)).c_str());
  return ExitCode::ok;
}

}  // namespace

extern constinit const Subcommand kHostAbility{.name = "host-ability",
                                               .summary = "features that programs may use here",
                                               .run = host_ability_command,
                                               .signals = Signals::children,
                                               .listed = false};

}  // namespace lockstep::cli
