// The names of this machine.
#pragma once

#include <string>
#include <string_view>

namespace lockstep::host {

std::string hostname();  // gethostname()

// The name that reports show: what Python's socket.getfqdn() finds in the text of /etc/hosts.
// DNS is never asked, so this cannot hang. Where it finds "localhost", the host name takes its
// place.
std::string fqdn_from_hosts(std::string_view hostname, std::string_view hosts);
std::string node_name();

}  // namespace lockstep::host
