// lockstep host-lease: serves requests about the lease of a rented machine, and runs the lease's
// daemon. Clients and systemd start this on the machine. People do not call this.
#include "cli/subcommand.h"
#include "machine/lease_requests.h"

namespace lockstep::cli {
namespace {

Result<ExitCode> host_lease_command(const Call& call) {
  return machine::serve_lease_request(call.words).map(passed_on);
}

}  // namespace

extern constinit const Subcommand kHostLease{.name = "host-lease",
                                             .summary = "the lease of this machine",
                                             .run = host_lease_command,
                                             .fails_with = always(ExitCode::failed),
                                             .listed = false};

}  // namespace lockstep::cli
