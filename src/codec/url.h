// URLs: percent encoding, forms, and the parts of a URL.
#pragma once

#include "base/error.h"

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace lockstep::codec {

// The marks that RFC 3986 leaves unencoded. AWS requires exactly these.
inline constexpr std::string_view kUnreserved = "-._~";

// Encodes as %XX, in upper case, everything except letters, digits and the marks in `plain`.
std::string percent_code(std::string_view text, std::string_view plain = kUnreserved);
// Decodes %XX. '+' stays '+'. nullopt: a '%' without two hex digits.
std::optional<std::string> percent_decode(std::string_view text);

// Formats application/x-www-form-urlencoded with strict encoding ("%20", never '+'), in the given
// order. Also fits a query.
std::string form_text(std::span<const std::pair<std::string, std::string>> members);

struct Url {
  bool tls = false;
  std::string user;      // decoded, like the password
  std::string password;  //
  std::string host;      // in lower case, IPv6 without brackets
  int port = 0;          // 80 or 443 if the text has no port
  std::string target;    // path and query, at least "/"
};

// Parses an http:// or https:// URL and drops the fragment. `what` names the origin of the URL in
// errors: "HTTPS_PROXY". Errors never quote the text, which may contain a password.
Result<Url> parse_url(std::string_view text, std::string_view what);

// Formats "HOST" or "HOST:PORT" for a Host header: leaves out the scheme's default port.
std::string host_text(const std::string& host, int port, bool tls);

}  // namespace lockstep::codec
