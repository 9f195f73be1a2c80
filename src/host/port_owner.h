// Finds who listens on a TCP port of this machine, for "the port is taken" messages.
#pragma once

#include "base/error.h"

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>

namespace lockstep::host {

struct PortOwner {
  pid_t pid = 0;        // 0: not visible to us (another user's process)
  std::string command;  // as a shell would need it, cut to a line; empty if unknown
  uid_t uid = 0;
};

// nullopt: nobody listens there. `proc` is "/proc" except in tests.
std::optional<PortOwner> find_port_owner(const std::string& proc, std::uint16_t port);

// "pid 12: python3 -m http.server"; empty: nobody listens there.
std::string port_holder(int port);
// Adds who holds `port` to an error of listening on it, if the port was taken.
void name_port_holder(Error& error, int port);

}  // namespace lockstep::host
