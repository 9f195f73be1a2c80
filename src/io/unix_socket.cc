// Connects to a Unix socket.
#include "io/unix_socket.h"

#include "base/text.h"

#include <errno.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <cstring>

namespace lockstep::io {

Result<Fd> connect_unix(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  // sun_path holds 107 characters. A longer path must not be cut: it would name another socket.
  if (path.size() >= sizeof address.sun_path)
    return fail(Errc::invalid_input, "the path of the socket is too long: " + printable(path));
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  Fd fd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!fd) return fail_sys("make a socket", errno);
  if (connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    auto failure = fail_sys("connect to " + path, errno);
    // A socket file may outlive its listener, which then looks like a refusal.
    if (errno == ENOENT || errno == ECONNREFUSED) failure.value().code = Errc::unavailable;
    return failure;
  }
  return fd;
}

}  // namespace lockstep::io
