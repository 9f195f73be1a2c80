// The guard's locks, between those who start it and itself.
#pragma once

#include "base/error.h"
#include "io/fd.h"

namespace lockstep::rent {

class OnDemand;

inline constexpr const char* kGuardLock = "guard.lock";

// Held by the guard as long as it lives; already_exists where there is one.
Result<io::Fd> take_guard_lock(const OnDemand& world);
// how: LOCK_SH, by who needs it; LOCK_EX | LOCK_NB, by a guard that is about to go.
Result<io::Fd> lock_guard_use(int how);

}  // namespace lockstep::rent
