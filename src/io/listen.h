// Opening a listening TCP socket, and naming a socket's peer.
#pragma once

#include "base/error.h"
#include "io/fd.h"

#include <string>

namespace lockstep::io {

struct Listener {
  Fd fd;
  int port = 0;
};

// host "": every interface, IPv6 and IPv4 on one socket where the machine has IPv6, else IPv4.
// "localhost": the IPv4 loopback. port 0: the kernel picks. Non-blocking, SO_REUSEADDR.
// already_exists when the port is taken (host::name_port_holder tells by whom).
Result<Listener> open_listener(const std::string& host, int port, int backlog);

// "ADDRESS:PORT" of the other end, IPv4-mapped addresses in IPv4 form, "unknown peer" if there is
// none.
std::string peer_name(int fd);
std::string local_name(int fd);  // of our own end

}  // namespace lockstep::io
