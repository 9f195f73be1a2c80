// lockstep guard-rentals: the guard of rented machines; lockstep starts it, people do not call it.
#include "cli/subcommand.h"
#include "rent/guard.h"

namespace lockstep::cli {
namespace {

Result<ExitCode> guard_command(const Call& /*call*/) {
  return rent::guard_rentals().map(passed_on);
}

}  // namespace

extern constinit const Subcommand kGuardRentals{.name = rent::kGuardCommand,
                                                .summary = "ends rented machines in time",
                                                .run = guard_command,
                                                .signals = Signals::blocked,
                                                .fails_with = always(ExitCode::failed),
                                                .listed = false};

}  // namespace lockstep::cli
