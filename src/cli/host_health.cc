// lockstep host-health: sends facts of a rented machine to the client, which compares them with the
// offer. Clients start this on the machine. People do not call this.
#include "cli/subcommand.h"
#include "machine/health_probe.h"

namespace lockstep::cli {
namespace {

Result<ExitCode> host_health_command(const Call& /*call*/) {
  return machine::serve_health().map(passed_on);
}

}  // namespace

extern constinit const Subcommand kHostHealth{.name = "host-health",
                                              .summary = "whether this machine is healthy",
                                              .run = host_health_command,
                                              .fails_with = always(ExitCode::failed),
                                              .listed = false};

}  // namespace lockstep::cli
