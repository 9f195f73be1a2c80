// A lock between processes on a file. The kernel drops it when the process ends, however it ends.
#pragma once

#include "base/error.h"
#include "io/fd.h"

#include <sys/types.h>

#include <string>

namespace lockstep::io {

// One open lock file. The lock belongs to the open file, not to the process: a second FileLock on
// the same path is kept out also within one process, and a child that inherits the descriptor keeps
// the lock alive. Destroying the object closes the file and with it drops the lock.
class FileLock {
 public:
  enum class Kind { exclusive, shared };
  enum class IfHeld { wait, fail };
  // A part of a file, in bytes. Ranges are locked by fcntl(2), apart from whole files, which are
  // locked by flock(2): the two kinds of lock do not see each other.
  struct Range {
    off_t start = 0;
    off_t length = 0;  // 0: to the end of the file, however long it becomes
  };

  FileLock() = default;  // no file: false

  // Opens the file, and makes it if it is missing (its folder must exist). Follows no link at the
  // end of the path. Takes no lock yet.
  static Result<FileLock> open(const std::string& path, mode_t mode = 0600);
  // Opens the file and takes the lock. already_exists: another holder has it (IfHeld::fail).
  static Result<FileLock> take(const std::string& path, IfHeld if_held,
                               Kind kind = Kind::exclusive);

  // False: another holder has it. Harmless where this object has the lock already.
  Result<bool> try_lock(Kind kind = Kind::exclusive) const;
  Status wait_for_lock(Kind kind = Kind::exclusive) const;
  Result<bool> try_lock_range(const Range& range) const;  // exclusive
  Status wait_for_range(const Range& range) const;        // exclusive

  // Whether another holder has an exclusive lock. Takes a shared lock for a moment, which may keep
  // a try_lock() elsewhere out. False where the file can't be opened.
  static Result<bool> is_held(const std::string& path);
  // Whether another holder has a lock on part of the range. Asks only, and keeps nobody out. False
  // where the file can't be opened, or its file system has no locks.
  static bool range_is_held(const std::string& path, const Range& range);

  explicit operator bool() const { return static_cast<bool>(fd_); }
  int fd() const { return fd_.get(); }
  // The lock lives on as long as the descriptor.
  Fd release() && { return std::move(fd_); }

 private:
  FileLock(Fd fd, std::string path) : fd_(std::move(fd)), path_(std::move(path)) {}

  Fd fd_;
  std::string path_;
};

// flock(2) without waiting, for a descriptor with an owner of its own. False: another has the lock.
Result<bool> try_lock(int fd, FileLock::Kind kind);

}  // namespace lockstep::io
