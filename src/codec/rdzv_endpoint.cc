// Parses endpoints with torchrun's rules and messages.
#include "codec/rdzv_endpoint.h"

#include "base/text.h"

#include <fmt/core.h>

#include <algorithm>

namespace lockstep::codec {
namespace {

bool in_host(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
         c == '.' || c == ':' || c == '-' ||
         byte >= 0x80;  // torchrun uses Python's \w, which contains letters of all scripts
}

// Returns the port for 1 to 5 digits below 65536, else -1.
int port_of(std::string_view text) {
  // torchrun's pattern allows one to five digits.
  if (text.empty() || text.size() > 5) return -1;
  if (text.find_first_not_of("0123456789") != std::string_view::npos) return -1;
  const auto port = parse_int(text);
  return port && *port < 65536 ? static_cast<int>(*port) : -1;
}

}  // namespace

Result<RdzvEndpoint> parse_rdzv_endpoint(std::string_view text, int default_port) {
  text = strip(text);
  if (text.empty()) return RdzvEndpoint{"localhost", default_port};
  const std::string shown = printable(text);
  std::string_view host = text;
  int port = default_port;
  // The last colon separates, so "::1" without brackets becomes host ":" and port 1, as in
  // torchrun.
  const std::size_t colon = text.rfind(':');
  const bool bracketed = text.front() == '[' && text.back() == ']';
  if (!bracketed && colon != std::string_view::npos) {
    host = text.substr(0, colon);
    port = port_of(text.substr(colon + 1));
    if (port < 0)
      return fail(Errc::invalid_input,
                  fmt::format("the port number of the rendezvous endpoint '{}' must be an integer "
                              "between 0 and 65536",
                              shown),
                  "write host:port, and an IPv6 address in brackets: [::1]:29400");
  }
  // Brackets may be around the host alone: "[::1]:29400".
  if (host.size() > 1 && host.front() == '[' && host.back() == ']')
    host = host.substr(1, host.size() - 2);
  if (host.empty() || !std::all_of(host.begin(), host.end(), in_host))
    return fail(
        Errc::invalid_input,
        fmt::format("the hostname of the rendezvous endpoint '{}' must be a dot-separated list "
                    "of labels, an IPv4 address, or an IPv6 address",
                    shown));
  return RdzvEndpoint{std::string(host), port};
}

std::optional<bool> take_url_scheme(std::string_view& text) {
  for (const std::string_view scheme : {"http://", "https://"}) {
    if (!to_lower(text.substr(0, scheme.size())).starts_with(scheme)) continue;
    text.remove_prefix(scheme.size());
    while (text.ends_with('/'))
      text.remove_suffix(1);
    return scheme.starts_with("https");
  }
  return std::nullopt;
}

}  // namespace lockstep::codec
