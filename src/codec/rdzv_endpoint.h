// --rdzv-endpoint: "host[:port]", parsed like torchrun (split at the last colon, IPv6 in brackets).
#pragma once

#include "base/error.h"

#include <optional>
#include <string>
#include <string_view>

namespace lockstep::codec {

struct RdzvEndpoint {
  std::string host;  // without brackets
  int port = 0;      // default_port if the text has no port

  bool operator==(const RdzvEndpoint&) const = default;
};

// Parses an endpoint. Empty text means localhost with the default port. Fails with invalid_input.
Result<RdzvEndpoint> parse_rdzv_endpoint(std::string_view text, int default_port);

// Removes "http://" or "https://" from the start, and then slashes from the end. Returns whether
// the scheme was https. nullopt: no scheme.
std::optional<bool> take_url_scheme(std::string_view& text);

}  // namespace lockstep::codec
