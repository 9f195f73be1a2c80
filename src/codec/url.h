// URLs: percent coding, forms, and a URL's parts.
#pragma once

#include "base/error.h"

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace lockstep::codec {

// What RFC 3986 leaves alone; AWS asks for exactly this.
inline constexpr std::string_view kUnreserved = "-._~";

// All but letters, digits and the marks in `plain`, as %XX with capitals.
std::string percent_code(std::string_view text, std::string_view plain = kUnreserved);
// nullopt: a '%' without two hex digits behind it. '+' stays what it is.
std::optional<std::string> percent_decode(std::string_view text);

// application/x-www-form-urlencoded with strict coding ("%20", never '+'), in the order given.
// Fits a query, too.
std::string form_text(std::span<const std::pair<std::string, std::string>> members);

struct Url {
  bool tls = false;
  std::string user;      // decoded; as is "password"
  std::string password;  //
  std::string host;      // in small letters, IPv6 without brackets
  int port = 0;          // 80 or 443 where the text has none
  std::string target;    // path and query, at least "/"
};

// http:// and https:// only, without a fragment. Errors never repeat the text, as it may have a
// password in it; `what` names where it came from: "HTTPS_PROXY".
Result<Url> parse_url(std::string_view text, std::string_view what);

// "HOST" or "HOST:PORT", as a Host header has it: without the scheme's own port.
std::string host_text(const std::string& host, int port, bool tls);

}  // namespace lockstep::codec
