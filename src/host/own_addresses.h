// The addresses by which other hosts might reach this one.
#pragma once

#include <string>
#include <vector>

namespace lockstep::host {

// Returns addresses: IPv4 before IPv6, the loopback last, without link-local ones. Otherwise in the
// order of the interfaces.
std::vector<std::string> own_addresses();

}  // namespace lockstep::host
