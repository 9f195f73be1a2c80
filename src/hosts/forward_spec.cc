#include "hosts/forward_spec.h"

#include "base/text.h"

#include <fmt/core.h>

#include <algorithm>
#include <optional>

namespace lockstep::hosts {
namespace {

// The longest name in DNS.
constexpr std::size_t kMostHost = 253;

std::optional<int> parse_port(std::string_view text, int least) {
  // parse_int() also takes signs, spaces and underscores, which no port has.
  const bool digits = !text.empty() && text.size() <= 5 &&
                      text.find_first_not_of("0123456789") == std::string_view::npos;
  const auto number = digits ? parse_int(text) : std::nullopt;
  if (!number || *number < least || *number > 65535) return std::nullopt;
  return static_cast<int>(*number);
}

// Names are resolved on the host, so only refuse bytes that no name or address has.
bool is_host(std::string_view text) {
  return !text.empty() && text.size() <= kMostHost &&
         std::all_of(text.begin(), text.end(), [](char c) { return c > ' ' && c < 0x7F; });
}

}  // namespace

Result<ForwardSpec> parse_forward_spec(std::string_view text) {
  const auto refuse = [text](const char* what) {
    return fail(Errc::invalid_input, fmt::format("'{}': {}", printable(text), what),
                "write 8888, 8080:80 or 8080:HOST:80");
  };
  ForwardSpec spec;
  // HOST may contain colons (IPv6), so LOCAL ends at the first colon and PORT begins after the
  // last.
  const std::size_t first = text.find(':');
  const std::size_t last = text.rfind(':');
  const auto port = parse_port(last == std::string_view::npos ? text : text.substr(last + 1), 1);
  if (!port) return refuse("the remote port must be 1 to 65535");
  spec.port = *port;
  const auto local = parse_port(text.substr(0, first), 0);
  if (!local) return refuse("the local port must be 0 to 65535");
  spec.local = *local;
  if (first == last) return spec;
  std::string_view host = text.substr(first + 1, last - first - 1);
  if (host.starts_with('[') && host.ends_with(']'))
    host = host.substr(1, host.size() - 2);
  else if (host.find(':') != std::string_view::npos)
    return refuse("an IPv6 address must be in brackets");
  if (!is_host(host)) return refuse("a host must stand between the ports");
  spec.host = std::string(host);
  return spec;
}

}  // namespace lockstep::hosts
