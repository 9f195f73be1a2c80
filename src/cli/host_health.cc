// lockstep host-health: whether a rented machine is what was bought; people do not call it.
#include "cli/subcommand.h"
#include "machine/health_probe.h"

namespace lockstep::cli {
namespace {

int host_health_command(const Call& /*call*/) {
  const auto code = machine::serve_health();
  if (code) return *code;
  print_error("lockstep host-health", code.error());
  return 1;
}

}  // namespace

extern constinit const Subcommand kHostHealth{.name = "host-health",
                                              .summary = "whether this machine is healthy",
                                              .run = host_health_command,
                                              .listed = false};

}  // namespace lockstep::cli
