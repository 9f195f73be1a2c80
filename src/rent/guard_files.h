// The guard's two lock files. guard.lock is held by the running guard, guard.use by commands that
// need it.
#pragma once

#include "base/error.h"
#include "io/fd.h"
#include "io/file_lock.h"

namespace lockstep::rent {

class OnDemand;

inline constexpr const char* kGuardLock = "guard.lock";

// Takes guard.lock for the life of the guard. already_exists: another guard runs.
Result<io::Fd> take_guard_lock(const OnDemand& world);
// Which side takes guard.use, the lock that keeps the guard from exiting while a command needs it.
enum class GuardUse {
  need,  // by a command, shared with other commands: waits while a guard is about to exit
  end,   // by a guard that is about to exit: already_exists while a command needs it
};
Result<io::FileLock> lock_guard_use(GuardUse use);

}  // namespace lockstep::rent
