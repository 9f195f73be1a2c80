// lockstep host-ability: tells what compiled code may use on this node. People do not call this.
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
  // A copy of this program that came for this question alone.
  if (const char* carried = std::getenv("LOCKSTEP_CARRIED")) unlink(carried);
  const char* node = std::getenv("SLURMD_NODENAME");
  const std::string name = node != nullptr && *node != 0 ? node : host::hostname();
  std::puts(setup::ability_text(setup::ability_here(name)).c_str());
  return ExitCode::ok;
}

}  // namespace

extern constinit const Subcommand kHostAbility{.name = "host-ability",
                                               .summary = "what code may use on this node",
                                               .run = host_ability_command,
                                               .signals = Signals::children,
                                               .listed = false};

}  // namespace lockstep::cli
