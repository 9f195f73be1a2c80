#include "setup/lock_file.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>

namespace lockstep::setup {

Result<io::Fd> lock_file(const std::string& path, const std::function<void()>& waits) {
  io::Fd fd(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  if (!fd) return fail_sys("open " + path, errno);
  // flock() belongs to the open file, so the lock ends with the process, also after SIGKILL.
  if (flock(fd.get(), LOCK_EX | LOCK_NB) == 0) return fd;
  if (errno == EWOULDBLOCK) waits();
  while (flock(fd.get(), LOCK_EX) != 0)
    if (errno != EINTR) return fail_sys("lock " + path, errno);
  return fd;
}

}  // namespace lockstep::setup
