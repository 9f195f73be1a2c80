// Unix sockets: connect, listen, and who is at the other end.
#include "io/unix_socket.h"

#include "base/text.h"

#include <errno.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstddef>
#include <cstring>

namespace lockstep::io {
namespace {

constexpr int kConnectSeconds = 5;

struct UnixAddress {
  sockaddr_un address{};
  socklen_t size = 0;
  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&address); }
};

Result<UnixAddress> address_of(const std::string& path) {
  UnixAddress made;
  made.address.sun_family = AF_UNIX;
  // sun_path holds 107 characters. A longer path must not be cut: it would name another socket.
  if (path.empty() || path.size() >= sizeof made.address.sun_path)
    return fail(Errc::invalid_input, "the path of the socket is too long: " + printable(path));
  std::memcpy(made.address.sun_path, path.data(), path.size());
  made.size = sizeof made.address;
  if (path.front() != '@') return made;
  // An abstract name begins with a zero, and each byte within the size counts.
  made.address.sun_path[0] = '\0';
  made.size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + path.size());
  return made;
}

Result<Fd> connect_with(const std::string& path, int flags) {
  LOCKSTEP_TRY_ASSIGN(const UnixAddress address, address_of(path));
  Fd fd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | flags, 0));
  if (!fd) return fail_sys("make a socket", errno);
  // With a full backlog a blocking connect() waits, for ever if the listener is stopped.
  const timeval limit{.tv_sec = kConnectSeconds, .tv_usec = 0};
  (void)setsockopt(fd.get(), SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
  if (connect(fd.get(), address.get(), address.size) != 0) {
    if (errno == EAGAIN) return fail(Errc::timeout, "nothing accepts connections at " + path);
    auto failure = fail_sys("connect to " + path, errno);
    // A socket file may outlive its listener, which then looks like a refusal.
    if (errno == ENOENT || errno == ECONNREFUSED) failure.value().code = Errc::unavailable;
    return failure;
  }
  return fd;
}

}  // namespace

Result<Fd> connect_unix(const std::string& path) {
  return connect_with(path, 0);
}

Result<Fd> connect_unix_now(const std::string& path) {
  return connect_with(path, SOCK_NONBLOCK);
}

Result<Fd> listen_unix(const std::string& path, int backlog) {
  LOCKSTEP_TRY_ASSIGN(const UnixAddress address, address_of(path));
  Fd fd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd) return fail_sys("make a socket", errno);
  // bind() gives the file the mode of the socket, so at no time can others connect.
  if (fchmod(fd.get(), 0600) != 0) return fail_sys("set the mode of a socket", errno);
  if (bind(fd.get(), address.get(), address.size) != 0) {
    if (errno != EADDRINUSE) return fail_sys("listen on " + path, errno);
    // A killed program leaves the file behind.
    if (connect_unix(path))
      return fail(Errc::already_exists, "a program listens on " + printable(path));
    if (unlink(path.c_str()) != 0 || bind(fd.get(), address.get(), address.size) != 0)
      return fail_sys("listen on " + path, errno);
  }
  if (listen(fd.get(), backlog) != 0) return fail_sys("listen on " + path, errno);
  return fd;
}

bool is_own_peer(int fd) {
  ucred peer{};
  socklen_t size = sizeof peer;
  if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0) return false;
  return peer.uid == geteuid() || peer.uid == 0;
}

std::optional<pid_t> peer_pid(int fd) {
  ucred peer{};
  socklen_t size = sizeof peer;
  if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0) return std::nullopt;
  // The kernel gives 0 for a process that has no number here.
  return peer.pid > 0 ? std::optional(peer.pid) : std::nullopt;
}

}  // namespace lockstep::io
