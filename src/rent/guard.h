// The guard is a background process that terminates rented machines which cannot terminate
// themselves. The guard also starts a follower for each job without a command (follow_plan.h). Each
// state folder has one guard. The guard outlives the terminal and the starting command, reads the
// journal again and again, and exits when nothing is left to guard. Provider credentials come from
// the environment of the starting command and from the usual files.
#pragma once

#include "base/error.h"
#include "cloud/rental.h"
#include "io/fd.h"
#include "rent/guard_plan.h"

#include <string>

namespace lockstep::rent {

class OnDemand;

inline constexpr const char* kGuardCommand = "guard-rentals";

// Returns true if the guard on this machine watches the rental: the rental's terms name it, and the
// rental is not closed.
bool wants_guard(const cloud::Rental& rental);

bool guard_lives();
std::string guard_log();  // the path of the guard's log

// Starts a guard, unless a guard with all credentials of this process runs. The guard cannot exit
// for lack of work while the returned lock is held. unavailable: the guard does not start.
Result<io::Fd> need_guard(const OnDemand& world);

// Returns the guard's intervals, divided by LOCKSTEP_GUARD_SPEED, which only tests set.
GuardPace guard_pace();

// Runs the guard in this process. Returns when nothing is left to guard, or after SIGTERM.
Result<int> guard_rentals();

}  // namespace lockstep::rent
