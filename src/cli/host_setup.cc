// lockstep host-setup: the host's end of `lockstep install`. Reads a request from stdin and writes
// the answer to stdout. People do not call this.
#include "setup/host_setup.h"

#include "cli/subcommand.h"

namespace lockstep::cli {
namespace {

Result<ExitCode> host_setup_command(const Call& /*call*/) {
  return passed_on(setup::serve_setup());
}

}  // namespace

extern constinit const Subcommand kHostSetup{.name = "host-setup",
                                             .summary = "the host's end of install",
                                             .run = host_setup_command,
                                             .listed = false};

}  // namespace lockstep::cli
