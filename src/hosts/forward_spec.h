// What `lockstep forward` is asked to forward. Pure.
#pragma once

#include "base/error.h"

#include <string>
#include <string_view>

namespace lockstep::hosts {

struct ForwardSpec {
  int local = 0;                   // here, on 127.0.0.1; 0: one that is free
  std::string host = "localhost";  // as the host there sees it
  int port = 0;
};

// "8888" (the same port on both sides), "LOCAL:PORT", "LOCAL:HOST:PORT"; an IPv6 address stands in
// brackets.
Result<ForwardSpec> parse_forward_spec(std::string_view text);

}  // namespace lockstep::hosts
