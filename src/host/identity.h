// Names of this machine.
#pragma once

#include <string>
#include <string_view>

namespace lockstep::host {

std::string hostname();  // gethostname()

// Returns the name shown in reports: Python's socket.getfqdn(), applied to the text of /etc/hosts.
// Never asks DNS, so it cannot hang. If the result is "localhost", returns the host name instead.
std::string fqdn_from_hosts(std::string_view hostname, std::string_view hosts);
// Returns fqdn_from_hosts() for this machine.
std::string node_name();

}  // namespace lockstep::host
