// Opens a standard stream a second time.
#include "io/own_stream.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <string>

namespace lockstep::io {

bool is_pipe_or_socket(int fd) {
  struct stat info {};
  return fstat(fd, &info) == 0 && (S_ISFIFO(info.st_mode) || S_ISSOCK(info.st_mode));
}

Result<OwnStream> OwnStream::open(int fd, Way way) {
  struct stat info {};
  if (fstat(fd, &info) != 0) return fail_sys("look at a standard stream", errno);
  const bool terminal = S_ISCHR(info.st_mode) && isatty(fd) == 1;
  const bool pollable = is_pipe_or_socket(fd) || terminal;
  // O_NONBLOCK is a flag of the open file, which the shell and other programs share. Setting it
  // would make their reads fail with EAGAIN, so open the pipe or terminal anew.
  if (S_ISFIFO(info.st_mode) || terminal) {
    // O_NOCTTY: opening a terminal must not make it the controlling terminal.
    const std::string path = "/proc/self/fd/" + std::to_string(fd);
    const int flags = (way == Way::read ? O_RDONLY : O_WRONLY) | O_NONBLOCK | O_NOCTTY | O_CLOEXEC;
    if (Fd anew(::open(path.c_str(), flags)); anew) return OwnStream(fd, std::move(anew), true, -1);
  }
  // A file or /dev/null never blocks, and epoll would refuse it.
  if (!pollable) return OwnStream(fd, Fd(), false, -1);
  // A socket, or another user's terminal (sudo -u), cannot be opened a second time. Change the
  // shared flags and restore them at the end.
  Fd same(fcntl(fd, F_DUPFD_CLOEXEC, 3));
  if (!same) return fail_sys("duplicate a standard stream", errno);
  const int before = fcntl(same.get(), F_GETFL);
  LOCKSTEP_TRY(set_nonblocking(same.get()));
  return OwnStream(fd, std::move(same), true, before);
}

OwnStream::~OwnStream() {
  if (fd_ && flags_before_ >= 0) fcntl(fd_.get(), F_SETFL, flags_before_);
}

}  // namespace lockstep::io
