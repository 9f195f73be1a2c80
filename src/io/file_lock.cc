#include "io/file_lock.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>

namespace lockstep::io {
namespace {

int operation(FileLock::Kind kind) {
  return kind == FileLock::Kind::shared ? LOCK_SH : LOCK_EX;
}

// Locks of the open file (F_OFD_*). The older F_SETLK belongs to the process, which loses it as
// soon as any part of it closes the file.
struct flock record_of(const FileLock::Range& range) {
  struct flock lock {};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  lock.l_start = range.start;
  lock.l_len = range.length;
  return lock;
}

}  // namespace

// flock() locks belong to the open file. The kernel drops them when the last descriptor is closed,
// also after SIGKILL.
Result<bool> try_lock(int fd, FileLock::Kind kind) {
  while (flock(fd, operation(kind) | LOCK_NB) != 0) {
    if (errno == EWOULDBLOCK) return false;
    if (errno != EINTR) return fail_sys("lock", errno);
  }
  return true;
}

Result<FileLock> FileLock::open(const std::string& path, mode_t mode) {
  // O_NOFOLLOW: in a shared folder another user could plant a link, and this open would create a
  // file at its target.
  Fd fd(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, mode));
  if (!fd) return fail_sys("open " + path, errno);
  return FileLock(std::move(fd), path);
}

Result<FileLock> FileLock::take(const std::string& path, IfHeld if_held, Kind kind) {
  LOCKSTEP_TRY_ASSIGN(FileLock lock, open(path));
  if (if_held == IfHeld::wait) {
    LOCKSTEP_TRY(lock.wait_for_lock(kind));
    return lock;
  }
  LOCKSTEP_TRY_ASSIGN(const bool taken, lock.try_lock(kind));
  if (!taken) return fail(Errc::already_exists, path + " is locked by another process");
  return lock;
}

Result<bool> FileLock::try_lock(Kind kind) const {
  auto taken = io::try_lock(fd_.get(), kind);
  if (!taken) return fail_sys("lock " + path_, taken.error().sys);
  return taken;
}

Status FileLock::wait_for_lock(Kind kind) const {
  while (flock(fd_.get(), operation(kind)) != 0)
    if (errno != EINTR) return fail_sys("lock " + path_, errno);
  return {};
}

Result<bool> FileLock::try_lock_range(const Range& range) const {
  struct flock lock = record_of(range);
  while (fcntl(fd_.get(), F_OFD_SETLK, &lock) != 0) {
    if (errno == EAGAIN || errno == EACCES) return false;
    if (errno != EINTR) return fail_sys("lock " + path_, errno);
  }
  return true;
}

Status FileLock::wait_for_range(const Range& range) const {
  struct flock lock = record_of(range);
  while (fcntl(fd_.get(), F_OFD_SETLKW, &lock) != 0)
    if (errno != EINTR) return fail_sys("lock " + path_, errno);
  return {};
}

Result<bool> FileLock::is_held(const std::string& path) {
  const Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd) return false;
  // Ask with a shared lock, so that two processes that ask at the same time do not see each other
  // as holders.
  LOCKSTEP_TRY_ASSIGN(const bool free, io::try_lock(fd.get(), Kind::shared));
  return !free;
}

bool FileLock::range_is_held(const std::string& path, const Range& range) {
  const Fd fd(::open(path.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW));
  struct flock lock = record_of(range);
  return fd && fcntl(fd.get(), F_OFD_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
}

}  // namespace lockstep::io
