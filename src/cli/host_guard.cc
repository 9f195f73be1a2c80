// lockstep host-guard: passes requests of clients to the guard of rented machines on this host.
// People do not call this.
#include "cli/subcommand.h"
#include "rent/guard_desk.h"
#include "rent/guard_talk.h"

#include <cstdio>

namespace lockstep::cli {
namespace {

Result<ExitCode> host_guard_command(const Call& call) {
  std::puts(rent::answer_guard_request(call.words).c_str());
  return ExitCode::ok;
}

}  // namespace

extern constinit const Subcommand kHostGuard{.name = rent::kHostGuardCommand,
                                             .summary = "the guard of rented machines here",
                                             .run = host_guard_command,
                                             .signals = Signals::blocked,
                                             .listed = false};

}  // namespace lockstep::cli
