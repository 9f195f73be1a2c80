// Descriptors, pipes and whole files.
#include "io/fd.h"

#include "io/fail_write.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <climits>

namespace lockstep::io {

void Fd::reset() {
  if (fd_ >= 0) close(fd_);
  fd_ = -1;
}

// O_CLOEXEC must be set by pipe2() itself: a child that another thread starts in between would
// inherit the ends, and their reader would never see the end of the stream.
Result<Pipe> make_pipe() {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return fail_sys("pipe", errno);
  return Pipe{Fd(ends[0]), Fd(ends[1])};
}

Status set_nonblocking(int fd) {
  const int flags = fcntl(fd, F_GETFL);
  if (flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) != 0)
    return fail_sys("set non-blocking", errno);
  return {};
}

// Soft limits are low by default (1024) for programs that use select(). This process uses epoll,
// but workers may use select(), so the caller hands the old limit to workers.
rlimit raise_open_files_limit() {
  rlimit before{};
  getrlimit(RLIMIT_NOFILE, &before);
  rlimit raised = before;
  raised.rlim_cur = std::min<rlim_t>(before.rlim_max, 1 << 20);
  if (raised.rlim_cur > before.rlim_cur) setrlimit(RLIMIT_NOFILE, &raised);
  return before;
}

Result<std::string> read_file(const std::string& path, std::size_t limit) {
  // O_NONBLOCK: opening a FIFO without a writer would block.
  const Fd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!fd) return fail_sys("open " + path, errno);
  std::string bytes;
  char chunk[16384];
  while (bytes.size() < limit) {
    const ssize_t got = read(fd.get(), chunk, std::min(sizeof chunk, limit - bytes.size()));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return fail_sys("read " + path, errno);
    if (got == 0) break;
    bytes.append(chunk, static_cast<std::size_t>(got));
  }
  return bytes;
}

Failure fail_write(const std::string& path, int sys_errno) {
  const bool full = sys_errno == ENOSPC || sys_errno == EDQUOT;
  if (!full || !path.starts_with('/')) return fail_sys("write " + path, sys_errno);
  // In a job of many nodes the user must know which machine's disk is full.
  std::array<char, HOST_NAME_MAX + 1> host{};
  if (gethostname(host.data(), host.size() - 1) != 0) host[0] = '\0';
  return Failure(Error{Errc::exhausted, std::string("no space left on ") + host.data() + ":" + path,
                       "free some there", sys_errno});
}

Status write_file(const std::string& path, std::string_view bytes) {
  const Fd fd(open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NONBLOCK, 0644));
  if (!fd) return fail_sys("open " + path, errno);
  return write_all(fd.get(), bytes, path);
}

Status write_all(int fd, std::string_view bytes, const std::string& path) {
  while (!bytes.empty()) {
    const ssize_t put = write(fd, bytes.data(), bytes.size());
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) return fail_write(path, errno);
    bytes.remove_prefix(static_cast<std::size_t>(put));
  }
  return {};
}

}  // namespace lockstep::io
