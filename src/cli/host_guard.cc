// lockstep host-guard: answers a client's requests about the rentals that this host guards for the
// client (`--guard HOST`). People do not call this.
#include "cli/subcommand.h"
#include "rent/guard_desk.h"
#include "rent/guard_talk.h"

#include <cstdio>

namespace lockstep::cli {
namespace {

Result<ExitCode> host_guard_command(const Call& call) {
  // The line carries errors, too, so the exit code is always 0.
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
