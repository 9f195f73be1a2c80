// Parses URLs strictly: a host goes into request heads and tunnels.
#include "codec/url.h"

#include "base/text.h"

#include <fmt/core.h>

#include <algorithm>

namespace lockstep::codec {
namespace {

constexpr std::size_t kLongestUrl = 8 << 10;
constexpr int kHttpPort = 80;
constexpr int kHttpsPort = 443;

int url_hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

bool is_url_letter(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

// Returns whether the text is a name or an address. The check is strict, so that nothing else can
// get into the head of a request.
bool is_url_host(std::string_view host, bool in_brackets) {
  const std::string_view marks = in_brackets ? ":.%" : "-._";
  return !host.empty() && std::all_of(host.begin(), host.end(), [&](char c) {
    return is_url_letter(c) || marks.find(c) != std::string_view::npos;
  });
}

// Removes "user:password@" from the part before the path.
bool take_user(std::string_view& place, Url& url) {
  // Split at the last '@', since a password may contain the character, too.
  const std::size_t at = place.rfind('@');
  if (at == std::string_view::npos) return true;
  const std::string_view who = place.substr(0, at);
  place.remove_prefix(at + 1);
  const std::size_t colon = who.find(':');
  auto user = percent_decode(who.substr(0, colon));
  auto password = percent_decode(colon == std::string_view::npos ? "" : who.substr(colon + 1));
  if (!user || !password) return false;
  url.user = std::move(*user);
  url.password = std::move(*password);
  return true;
}

bool take_host(std::string_view& place, Url& url) {
  const bool in_brackets = place.starts_with('[');
  const std::size_t end = in_brackets ? place.find(']') : place.find(':');
  if (in_brackets && end == std::string_view::npos) return false;
  const std::string_view host = in_brackets ? place.substr(1, end - 1) : place.substr(0, end);
  if (!is_url_host(host, in_brackets)) return false;
  // Host names do not depend on case.
  url.host = to_lower(host);
  place.remove_prefix(std::min(place.size(), in_brackets ? end + 1 : end));
  return true;
}

bool take_port(std::string_view place, Url& url) {
  constexpr int kMaxPort = 65535;
  url.port = url.tls ? kHttpsPort : kHttpPort;
  if (place.empty() || place == ":") return true;
  if (!place.starts_with(':') || place.size() > 6) return false;
  place.remove_prefix(1);
  if (!std::all_of(place.begin(), place.end(), [](char c) { return c >= '0' && c <= '9'; }))
    return false;
  url.port = static_cast<int>(parse_int(place).value_or(0));
  return url.port >= 1 && url.port <= kMaxPort;
}

}  // namespace

std::string percent_code(std::string_view text, std::string_view plain) {
  std::string coded;
  coded.reserve(text.size());
  for (const char c : text) {
    if (is_url_letter(c) || plain.find(c) != std::string_view::npos) {
      coded += c;
    } else {
      // Signature Version 4 signs this text and wants upper-case digits.
      coded += fmt::format("%{:02X}", static_cast<unsigned char>(c));
    }
  }
  return coded;
}

std::optional<std::string> percent_decode(std::string_view text) {
  std::string plain;
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (text[at] != '%') {
      plain += text[at];
      continue;
    }
    // Two hex digits must follow.
    if (at + 2 >= text.size()) return std::nullopt;
    const int high = url_hex_digit(text[at + 1]);
    const int low = url_hex_digit(text[at + 2]);
    if (high < 0 || low < 0) return std::nullopt;
    plain += static_cast<char>(high * 16 + low);
    at += 2;
  }
  return plain;
}

std::string form_text(std::span<const std::pair<std::string, std::string>> members) {
  std::string text;
  for (const auto& [name, value] : members) {
    if (!text.empty()) text += '&';
    text += percent_code(name);
    text += '=';
    text += percent_code(value);
  }
  return text;
}

Result<Url> parse_url(std::string_view text, std::string_view what) {
  const auto refuse = [&](std::string_view why) {
    return fail(Errc::invalid_input, fmt::format("{} {}", what, why),
                "write it as http://HOST:PORT or https://HOST:PORT");
  };
  if (text.size() > kLongestUrl) return refuse("is longer than 8 KiB");
  if (std::any_of(text.begin(), text.end(),
                  [](char c) { return static_cast<unsigned char>(c) <= ' ' || c == 0x7F; }))
    return refuse("has white space or control characters in it");
  Url url;
  const std::string scheme = to_lower(text.substr(0, text.find("://")));
  url.tls = scheme == "https";
  if ((!url.tls && scheme != "http") || scheme.size() == text.size())
    return refuse("must be an http:// or https:// URL");
  text.remove_prefix(scheme.size() + 3);
  // The fragment is for browsers and is never sent.
  text = text.substr(0, text.find('#'));
  std::string_view place = text.substr(0, text.find_first_of("/?"));
  url.target = text.substr(place.size());
  // "http://host?query" has an empty path, which a request line writes as "/".
  if (!url.target.starts_with('/')) url.target.insert(0, 1, '/');
  if (!take_user(place, url)) return refuse("has a broken user or password in it");
  if (!take_host(place, url)) return refuse("names no host");
  if (!take_port(place, url)) return refuse("has a port outside 1 to 65535");
  return url;
}

std::string host_text(const std::string& host, int port, bool tls) {
  const bool in_brackets = host.find(':') != std::string::npos;
  std::string text = in_brackets ? "[" + host + "]" : host;
  if (port != (tls ? kHttpsPort : kHttpPort)) text += fmt::format(":{}", port);
  return text;
}

}  // namespace lockstep::codec
