// The addresses of this host that others might reach it by.
#pragma once

#include <string>
#include <vector>

namespace lockstep::host {

// IPv4 before IPv6, the loopback last; no link-local ones. In the order of the interfaces else.
std::vector<std::string> own_addresses();

}  // namespace lockstep::host
