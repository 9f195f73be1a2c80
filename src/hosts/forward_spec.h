// Parses the ports that `lockstep forward` forwards. Pure.
#pragma once

#include "base/error.h"

#include <string>
#include <string_view>

namespace lockstep::hosts {

struct ForwardSpec {
  int local = 0;                   // a port on 127.0.0.1 of this machine; 0: any free port
  std::string host = "localhost";  // resolved on the remote host
  int port = 0;
};

// Parses "8888" (the same port on both sides), "LOCAL:PORT" or "LOCAL:HOST:PORT". An IPv6 address
// stands in brackets. Errors are invalid_input.
Result<ForwardSpec> parse_forward_spec(std::string_view text);

}  // namespace lockstep::hosts
