// lockstep host-guard: what clients say to the guard of rented machines on this host; people do not
// call it.
#include "cli/subcommand.h"
#include "proc/signals.h"
#include "rent/guard_desk.h"
#include "rent/guard_talk.h"

#include <signal.h>

#include <cstdio>

namespace lockstep::cli {
namespace {

int host_guard_command(const Call& call) {
  proc::block(proc::handled_signals());
  signal(SIGCHLD, SIG_DFL);
  std::puts(rent::answer_guard_request(call.words).c_str());
  return 0;
}

}  // namespace

extern constinit const Subcommand kHostGuard{.name = rent::kHostGuardCommand,
                                             .summary = "the guard of rented machines here",
                                             .run = host_guard_command,
                                             .listed = false};

}  // namespace lockstep::cli
