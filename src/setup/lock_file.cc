#include "setup/lock_file.h"

#include "io/file_lock.h"

namespace lockstep::setup {

Result<io::Fd> lock_file(const std::string& path, const std::function<void()>& waits) {
  LOCKSTEP_TRY_ASSIGN(io::FileLock lock, io::FileLock::open(path));
  // Try first, only to tell the user why nothing happens.
  const auto taken = lock.try_lock();
  if (taken && !*taken) waits();
  if (!taken || !*taken) LOCKSTEP_TRY(lock.wait_for_lock());
  return std::move(lock).release();
}

}  // namespace lockstep::setup
