// The guard: a process of ours on the user's machine that ends rented machines which can't end
// their own bill, and sees to it that somebody goes on with jobs whose command is gone
// (follow_plan.h). One for each state folder; it outlives the command that started it and the
// terminal, reads the journal again and again, and goes when nothing is left to guard. Keys of
// providers it has from the environment that started it, and from the usual files.
#pragma once

#include "base/error.h"
#include "cloud/rental.h"
#include "io/fd.h"
#include "rent/guard_plan.h"

#include <string>

namespace lockstep::rent {

class OnDemand;

inline constexpr const char* kGuardCommand = "guard-rentals";

// Whether it is agreed that the guard here watches this one.
bool wants_guard(const cloud::Rental& rental);

bool guard_lives();
std::string guard_log();  // the path of what it says

// Sees to it that one lives which has the keys of all providers that this process has keys of. As
// long as what is returned is held, it does not go for want of work. unavailable: it does not come
// up.
Result<io::Fd> need_guard(const OnDemand& world);

// All times are divided by LOCKSTEP_GUARD_SPEED, which only tests set.
GuardPace guard_pace();

// The guard itself. Returns when nothing is left, or by SIGTERM.
Result<int> guard_rentals();

}  // namespace lockstep::rent
