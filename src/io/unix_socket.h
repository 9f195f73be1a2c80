// Unix sockets, between processes of one user. A path that begins with '@' is an abstract name, for
// which there is no file: the name is free again once the process has ended, and any user of the
// same network namespace can connect.
#pragma once

#include "base/error.h"
#include "io/fd.h"

#include <sys/types.h>

#include <optional>
#include <string>

namespace lockstep::io {

// Connects. Waits only while the listener's backlog is full, for 5 s. Fails with Errc::unavailable
// if no program listens, and with Errc::timeout.
Result<Fd> connect_unix(const std::string& path);

// Connects without waiting; the socket is non-blocking. Fails also with Errc::timeout if the
// listener's backlog is full, as that of a stopped process may be.
Result<Fd> connect_unix_now(const std::string& path);

// Listens, non-blocking; a file has mode 0600. Replaces a socket file that no program listens on
// any more. Fails with Errc::already_exists if a program listens there.
Result<Fd> listen_unix(const std::string& path, int backlog);

// Returns whether the process at the other end of a connection runs as this user, or as root.
bool is_own_peer(int fd);

// Returns the pid of the process that has called listen() or connect() at the other end. nullopt:
// the process has no number in this pid namespace, because another container has it.
std::optional<pid_t> peer_pid(int fd);

}  // namespace lockstep::io
