#include "page/gate.h"

#include "base/text.h"
#include "codec/sha256.h"

#include <fmt/core.h>

#include <arpa/inet.h>

#include <algorithm>

namespace lockstep::page {
namespace {

http::Response refusal(int status, std::string_view why) {
  return {.status = status, .body = std::string(why) + "\n"};
}

// Returns the host of "HOST", "HOST:PORT" or "[V6]:PORT", in lower case and without brackets. "":
// the text is none of these.
std::string host_name(std::string_view host) {
  const bool bracketed = host.starts_with('[');
  const std::size_t end = bracketed ? host.find(']') : std::min(host.find(':'), host.size());
  if (end == std::string_view::npos) return {};
  std::string_view port = host.substr(bracketed ? end + 1 : end);
  if (port.starts_with(':')) port.remove_prefix(1);
  if (port.find_first_not_of("0123456789") != std::string_view::npos) return {};
  return to_lower(bracketed ? host.substr(1, end - 1) : host.substr(0, end));
}

std::string_view value_in(std::string_view text, std::string_view name, char separator) {
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(separator), text.size());
    const std::string_view part = strip(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    if (part.starts_with(name) && part.substr(name.size()).starts_with('='))
      return part.substr(name.size() + 1);
  }
  return {};
}

// Other sites may lead the user here, as a link does, but must not load our data.
bool is_foreign(const http::Request& request) {
  const std::string origin = request.field("origin");
  if (!origin.empty() && to_lower(origin) != "http://" + to_lower(request.field("host")))
    return true;
  const std::string site = request.field("sec-fetch-site");
  const bool own = site.empty() || site == "same-origin" || site == "none";
  return !own && request.field("sec-fetch-mode") != "navigate";
}

}  // namespace

bool is_loopback(std::string_view host) {
  return host == "localhost" || host == "::1" || (host.starts_with("127.") && is_address(host));
}

bool is_address(std::string_view host) {
  in6_addr into{};
  const std::string text(host);
  return inet_pton(AF_INET, text.c_str(), &into) == 1 ||
         inet_pton(AF_INET6, text.c_str(), &into) == 1;
}

bool equal_secrets(std::string_view a, std::string_view b) {
  // Compare all bytes: the time that this takes must not tell how many of them are right.
  if (a.size() != b.size()) return false;
  unsigned char differs = 0;
  for (std::size_t at = 0; at < a.size(); ++at)
    differs |= static_cast<unsigned char>(a[at] ^ b[at]);
  return differs == 0;
}

Gate::Gate(GateRules rules) : rules_(std::move(rules)) {
  // A browser sends cookies to all ports of a host. Pages of several jobs need several names.
  cookie_ = "lockstep_" + codec::hex(codec::sha256(rules_.token)).substr(0, 8);
  rules_.bound = to_lower(rules_.bound);
  for (std::string& name : rules_.names)
    name = to_lower(name);
}

// A site can make its own name resolve to this machine, but cannot use an address as a name. Behind
// a forwarded port the browser sees loopback, with another port.
bool Gate::knows_host(std::string_view host) const {
  const std::string name = host_name(host);
  if (is_loopback(name) || (!name.empty() && name == rules_.bound)) return true;
  const bool everywhere = rules_.bound.empty() || rules_.bound == "0.0.0.0" || rules_.bound == "::";
  if (everywhere && is_address(name)) return true;
  return std::find(rules_.names.begin(), rules_.names.end(), name) != rules_.names.end();
}

bool Gate::has_cookie(std::string_view cookies) const {
  return equal_secrets(value_in(cookies, cookie_, ';'), rules_.token);
}

http::Response Gate::welcome(const http::Request& request) const {
  http::Response response{.status = 303, .body = "the token is now a cookie\n"};
  response.fields.emplace_back(
      "Set-Cookie", fmt::format("{}={}; Path=/; HttpOnly; SameSite=Strict", cookie_, rules_.token));
  response.fields.emplace_back("Referrer-Policy", "no-referrer");
  const std::string site = request.field("sec-fetch-site");
  if (site == "cross-site" || site == "same-site") {
    // The user came by a link of another site. A browser sends no strict cookie along a redirect
    // that another site began, but along a refresh of our own answer.
    response.status = 200;
    response.fields.emplace_back("Refresh", "0; url=/");
  } else {
    // Leads to the address without the token, which then stands neither in the address bar nor in
    // the history of the browser.
    response.fields.emplace_back("Location", "/");
  }
  return response;
}

std::optional<http::Response> Gate::turn_away(const http::Request& request) const {
  if (!knows_host(request.field("host")))
    return refusal(403, "this name is not a name of this server (Host)");
  if (is_foreign(request)) return refusal(403, "other sites may not ask (Origin)");
  if (rules_.token.empty()) return std::nullopt;
  constexpr std::string_view kBearer = "bearer ";
  const std::string authorization = request.field("authorization");
  if (to_lower(authorization.substr(0, kBearer.size())) == kBearer &&
      equal_secrets(std::string_view(authorization).substr(kBearer.size()), rules_.token))
    return std::nullopt;
  if (request.path == "/" && equal_secrets(value_in(request.query, "token", '&'), rules_.token))
    return welcome(request);
  if (has_cookie(request.field("cookie"))) return std::nullopt;
  return refusal(403,
                 "no token, or another job's: open the address that lockstep page prints, or send "
                 "the token as \"Authorization: Bearer TOKEN\"");
}

}  // namespace lockstep::page
