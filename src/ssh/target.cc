#include "ssh/target.h"

#include "base/text.h"

#include <fmt/core.h>

#include <algorithm>

namespace lockstep::ssh {
namespace {

constexpr std::size_t kMostName = 253;

// The name becomes part of a ProxyCommand, which a shell runs: refuse every character with a
// meaning there.
bool is_safe(std::string_view name) {
  return !name.empty() && name.size() <= kMostName && name.front() != '-' &&
         std::all_of(name.begin(), name.end(), [](char c) {
           const auto byte = static_cast<unsigned char>(c);
           return byte > 0x20 && byte != 0x7F &&
                  std::string_view("'\"`\\$;&|<>(){}*?!").find(c) == std::string_view::npos;
         });
}

Failure refuse(std::string_view text, std::string_view why) {
  return fail(Errc::invalid_input, fmt::format("'{}' is not a host: {}", printable(text), why),
              "write host, user@host or user@host:port");
}

}  // namespace

Result<Target> parse_target(std::string_view text) {
  const std::string_view given = text;
  Target target;
  if (text.starts_with("ssh://")) text.remove_prefix(6);
  if (const std::size_t at = text.rfind('@'); at != std::string_view::npos) {
    target.user = std::string(text.substr(0, at));
    if (!is_safe(*target.user)) return refuse(given, "the user's name is not valid");
    text.remove_prefix(at + 1);
  }
  std::string_view port;
  if (text.starts_with('[')) {
    const std::size_t end = text.find(']');
    if (end == std::string_view::npos) return refuse(given, "']' is missing");
    port = text.substr(end + 1);
    text = text.substr(1, end - 1);
    if (!port.empty() && port.front() != ':') return refuse(given, "there is more text after ']'");
  } else if (std::count(text.begin(), text.end(), ':') == 1) {  // several colons: an IPv6 address
    port = text.substr(text.find(':'));
    text = text.substr(0, text.find(':'));
  }
  if (!is_safe(text)) return refuse(given, "its name is not valid");
  target.host = std::string(text);
  if (port.empty()) return target;
  const auto number = parse_int(port.substr(1));
  if (!number || *number < 1 || *number > 65535) return refuse(given, "the port is not 1 to 65535");
  target.port = static_cast<int>(*number);
  return target;
}

std::string target_text(const Target& target) {
  return target.user ? *target.user + "@" + target.host : target.host;
}

}  // namespace lockstep::ssh
