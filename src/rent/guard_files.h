// The guard's two lock files. guard.lock is held by the running guard, guard.use by commands that
// need it.
#pragma once

#include "base/error.h"
#include "io/fd.h"

namespace lockstep::rent {

class OnDemand;

inline constexpr const char* kGuardLock = "guard.lock";

// Takes guard.lock for the life of the guard. already_exists: another guard runs.
Result<io::Fd> take_guard_lock(const OnDemand& world);
// Takes guard.use. how: LOCK_SH for a command that needs the guard, which may block. LOCK_EX |
// LOCK_NB for a guard about to exit: already_exists if a command needs the guard.
Result<io::Fd> lock_guard_use(int how);

}  // namespace lockstep::rent
