// Opens a listening TCP socket, and names the ends of a socket.
#pragma once

#include "base/error.h"
#include "io/fd.h"

#include <string>

namespace lockstep::io {

struct Listener {
  Fd fd;
  int port = 0;
};

// Opens a non-blocking listener with SO_REUSEADDR. host: "" means every interface, IPv6 and IPv4 on
// one socket if the machine has IPv6, else IPv4; "localhost" means the IPv4 loopback. port: 0 lets
// the kernel pick. Fails with already_exists if the port is taken (host::name_port_holder names the
// owner).
Result<Listener> open_listener(const std::string& host, int port, int backlog);
// Holds the port on every interface for a later open_listener(): the kernel gives the port to no
// outgoing connection and to no program that asks for any free port. Callers are refused. Close the
// descriptor right before listening. port: 0 lets the kernel pick.
Result<Listener> reserve_port(int port);

// Returns "ADDRESS:PORT" of the other end, with IPv4-mapped addresses in IPv4 form. "unknown peer":
// no peer.
std::string peer_name(int fd);
std::string local_name(int fd);  // of this end

}  // namespace lockstep::io
