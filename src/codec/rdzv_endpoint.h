// --rdzv-endpoint: "host[:port]", read as torchrun reads it (split at the last colon, IPv6 in
// brackets).
#pragma once

#include "base/error.h"

#include <optional>
#include <string>
#include <string_view>

namespace lockstep::codec {

struct RdzvEndpoint {
  std::string host;  // without brackets
  int port = 0;      // default_port where the text has none

  bool operator==(const RdzvEndpoint&) const = default;
};

// Empty text is localhost with the default port.
Result<RdzvEndpoint> parse_rdzv_endpoint(std::string_view text, int default_port);

// Takes "http://" or "https://" off the front, and then slashes off the end. true: it was https;
// nullopt: there was no scheme.
std::optional<bool> take_url_scheme(std::string_view& text);

}  // namespace lockstep::codec
