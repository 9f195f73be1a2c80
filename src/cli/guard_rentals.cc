// lockstep guard-rentals: the guard of rented machines; lockstep starts it, people do not call it.
#include "cli/subcommand.h"
#include "proc/signals.h"
#include "rent/guard.h"

#include <signal.h>

namespace lockstep::cli {
namespace {

int guard_command(const Call& /*call*/) {
  proc::block(proc::handled_signals());
  signal(SIGCHLD, SIG_DFL);
  const auto code = rent::guard_rentals();
  if (code) return *code;
  print_error("lockstep guard-rentals", code.error());
  return 1;
}

}  // namespace

extern constinit const Subcommand kGuardRentals{.name = rent::kGuardCommand,
                                                .summary = "ends rented machines in time",
                                                .run = guard_command,
                                                .listed = false};

}  // namespace lockstep::cli
