// Finds the process that listens on a TCP port of this machine, for "the port is taken" messages.
#pragma once

#include "base/error.h"

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>

namespace lockstep::host {

struct PortOwner {
  pid_t pid = 0;        // 0: hidden from us (another user's process)
  std::string command;  // quoted as for a shell, shortened to a line; empty: unknown
  uid_t uid = 0;
};

// Returns the owner. nullopt: no process listens there. `proc` is "/proc" outside of tests.
std::optional<PortOwner> find_port_owner(const std::string& proc, std::uint16_t port);

// Returns "pid 12: python3 -m http.server". Empty: no process listens there.
std::string port_holder(int port);
// Adds the owner of `port` to an error from listening, if the port was taken.
void name_port_holder(Error& error, int port);

}  // namespace lockstep::host
