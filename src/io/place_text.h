// Text for a host and port.
#pragma once

#include <string>

namespace lockstep::io {

// Formats "HOST:PORT", with an IPv6 address in brackets.
std::string place_text(const std::string& host, int port);

}  // namespace lockstep::io
