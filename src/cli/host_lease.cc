// lockstep host-lease: what clients ask of a rented machine about its end; people do not call it.
#include "cli/subcommand.h"
#include "machine/lease_requests.h"

namespace lockstep::cli {
namespace {

int host_lease_command(const Call& call) {
  const auto code = machine::serve_lease_request(call.words);
  if (code) return *code;
  print_error("lockstep host-lease", code.error());
  return 1;
}

}  // namespace

extern constinit const Subcommand kHostLease{.name = "host-lease",
                                             .summary = "the lease of this machine",
                                             .run = host_lease_command,
                                             .listed = false};

}  // namespace lockstep::cli
