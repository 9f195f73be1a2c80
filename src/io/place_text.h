// A host and a port as people write them.
#pragma once

#include <string>

namespace lockstep::io {

// "HOST:PORT", an IPv6 address in brackets.
std::string place_text(const std::string& host, int port);

}  // namespace lockstep::io
