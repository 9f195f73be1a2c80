// System calls of a visit.
#include "rendezvous/file_store/file_visit.h"

#include "io/file_lock.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <utility>

namespace lockstep::rendezvous::file_store {

Result<FileVisit> FileVisit::open(const std::string& path, Create create) {
  // Non-blocking and read-write: opening a FIFO or a device in place of the file must not block.
  const int flags = O_RDWR | O_CLOEXEC | O_NONBLOCK | O_NOCTTY;
  const int made = create == Create::yes ? flags | O_CREAT : flags;
  io::Fd fd(::open(path.c_str(), made, 0644));
  if (!fd) return fail_sys("open", errno);
  FileVisit visit(std::move(fd));
  LOCKSTEP_TRY(visit.look());
  return visit;
}

FileVisit::~FileVisit() {
  // Unlock explicitly: a child between fork and exec may keep the open file description, and so the
  // lock.
  if (fd_ && locked_) flock(fd_.get(), LOCK_UN);
}

Status FileVisit::look() {
  struct stat facts {};
  if (fstat(fd_.get(), &facts) != 0) return fail_sys("stat", errno);
  if (!S_ISREG(facts.st_mode)) return fail(Errc::invalid_input, "not a regular file");
  identity_ = {facts.st_dev, facts.st_ino};
  size_ = static_cast<std::uint64_t>(facts.st_size);
  return {};
}

Result<bool> FileVisit::try_lock(bool exclusive) {
  using Kind = io::FileLock::Kind;
  LOCKSTEP_TRY_ASSIGN(const bool taken,
                      io::try_lock(fd_.get(), exclusive ? Kind::exclusive : Kind::shared));
  if (!taken) return false;
  locked_ = true;
  LOCKSTEP_TRY(look());
  return true;
}

Result<std::string> FileVisit::read_at(std::uint64_t offset, std::size_t count) const {
  std::string bytes(count, '\0');
  std::size_t got = 0;
  while (got < count) {
    const ssize_t part =
        pread(fd_.get(), bytes.data() + got, count - got, static_cast<off_t>(offset + got));
    if (part < 0 && errno == EINTR) continue;
    if (part < 0) return fail_sys("read", errno);
    if (part == 0) break;
    got += static_cast<std::size_t>(part);
  }
  bytes.resize(got);
  return bytes;
}

Status FileVisit::write_end(std::uint64_t offset, std::string_view bytes) {
  std::uint64_t at = offset;
  while (!bytes.empty()) {
    const ssize_t put = pwrite(fd_.get(), bytes.data(), bytes.size(), static_cast<off_t>(at));
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) {
      const int why = errno;
      // Remove the partial record, or other processes would see it as damage.
      (void)truncate(offset);
      return fail_sys("write", why);
    }
    at += static_cast<std::uint64_t>(put);
    bytes.remove_prefix(static_cast<std::size_t>(put));
  }
  size_ = at;
  return {};
}

Status FileVisit::truncate(std::uint64_t size) {
  if (ftruncate(fd_.get(), static_cast<off_t>(size)) != 0) return fail_sys("truncate", errno);
  size_ = size;
  return {};
}

}  // namespace lockstep::rendezvous::file_store
