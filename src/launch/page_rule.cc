// Applies --status-page and --metrics.
#include "base/text.h"
#include "codec/rdzv_endpoint.h"
#include "launch/rules.h"

#include <fmt/core.h>

#include <algorithm>

namespace lockstep::launch {
namespace {

constexpr std::size_t kLeastToken = 16;
constexpr std::size_t kMostToken = 256;

// Reads "ADDR:PORT", ":PORT" (every address of this machine) or "PORT" (loopback). A word without a
// port is more likely a slip, as "80O0", than an address.
Result<ServePlace> place_of(std::string_view option, const std::string& text) {
  const std::string_view given = strip(text);
  const auto bad = [&]() -> Failure {
    return fail(Errc::invalid_input,
                fmt::format("--{} must be a port or ADDR:PORT, got '{}'", option, printable(text)),
                "write an IPv6 address in brackets: [::1]:8000");
  };
  if (given.empty()) return bad();
  if (given.find_first_not_of("0123456789") == std::string_view::npos) {
    const auto port = parse_int(given);
    if (!port || *port > 65535) return bad();
    return ServePlace{.port = static_cast<std::uint16_t>(*port)};
  }
  const std::size_t colon = given.rfind(':');
  if (colon == std::string_view::npos || given.ends_with(']') || given.starts_with("::"))
    return bad();
  const bool everywhere = given.starts_with(':');
  const auto endpoint =
      codec::parse_rdzv_endpoint(everywhere ? fmt::format("localhost{}", given) : text, 0);
  if (!endpoint || endpoint->port > 65535) return bad();
  return ServePlace{.host = everywhere ? "" : endpoint->host,
                    .port = static_cast<std::uint16_t>(endpoint->port)};
}

bool is_everywhere(const std::string& host) {
  return host.empty() || host == "0.0.0.0" || host == "::";
}

// Returns whether two listeners at these places would be in each other's way.
bool collide(const ServePlace& a, const ServePlace& b) {
  const auto plain = [](const std::string& host) {
    return host == "localhost" ? std::string("127.0.0.1") : host;
  };
  // The kernel picks a free port for each 0.
  if (a.port == 0 || a.port != b.port) return false;
  return is_everywhere(a.host) || is_everywhere(b.host) || plain(a.host) == plain(b.host);
}

// The token becomes a part of an address and of a cookie.
bool is_token_text(std::string_view text) {
  return text.size() >= kLeastToken && text.size() <= kMostToken &&
         std::all_of(text.begin(), text.end(), [](char c) {
           return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                  c == '-' || c == '_' || c == '.' || c == '~';
         });
}

}  // namespace

Status apply_page(const RawOptions& raw, LaunchConfig& config) {
  PageConfig& page = config.page;
  if (raw.status_page) {
    LOCKSTEP_TRY_ASSIGN(page.status_page, place_of("status-page", *raw.status_page));
  }
  if (raw.metrics) {
    LOCKSTEP_TRY_ASSIGN(page.metrics, place_of("metrics", *raw.metrics));
  }
  if (!page.status_page && !page.metrics) return {};
  if (page.status_page && page.metrics && collide(*page.status_page, *page.metrics))
    return fail(Errc::invalid_input,
                fmt::format("--status-page and --metrics must have different ports (got {} twice)",
                            page.metrics->port),
                "the status page serves /metrics, too");
  if (!raw.page_token || raw.page_token->empty()) return {};
  // Never print the value, which is a secret.
  if (!is_token_text(*raw.page_token))
    return fail(Errc::invalid_input,
                fmt::format("LOCKSTEP_PAGE_TOKEN must have {} to {} letters, digits or -_.~",
                            kLeastToken, kMostToken));
  page.token = raw.page_token;
  return {};
}

}  // namespace lockstep::launch
