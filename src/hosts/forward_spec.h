// Parses the ports that `lockstep forward` forwards. Pure.
#pragma once

#include "base/error.h"

#include <string>
#include <string_view>

namespace lockstep::hosts {

struct ForwardSpec {
  int local = 0;                   // on 127.0.0.1 of this machine; 0: any free port
  std::string host = "localhost";  // resolved on the remote host
  int port = 0;
};

// "8888" (the same port on both sides), "LOCAL:PORT", "LOCAL:HOST:PORT"; an IPv6 address stands in
// brackets.
Result<ForwardSpec> parse_forward_spec(std::string_view text);

}  // namespace lockstep::hosts
