// Parses dates of HTTP headers.
#include "http/date.h"

#include "base/text.h"

#include <time.h>

#include <algorithm>
#include <string>

namespace lockstep::http {

std::optional<std::int64_t> parse_http_date(std::string_view text) {
  const std::string whole(text.substr(0, 64));
  // The three forms of RFC 9110. Senders must use the first, receivers must accept all.
  for (const char* form : {"%a, %d %b %Y %T GMT", "%A, %d-%b-%y %T GMT", "%a %b %d %T %Y"}) {
    tm utc{};
    const char* end = strptime(whole.c_str(), form, &utc);
    if (end == nullptr || *end != '\0') continue;
    const std::int64_t time = timegm(&utc);
    return time >= 0 ? std::optional(time) : std::nullopt;
  }
  return std::nullopt;
}

std::optional<std::chrono::seconds> retry_after(const ResponseHead& head, std::int64_t now) {
  // The longest wait that a server may ask for.
  // A server with a wrong clock or date must not stop the client for years.
  constexpr std::int64_t kLongest = 86'400;
  const std::string_view value = head.field("retry-after");
  if (value.empty()) return std::nullopt;
  const bool digits =
      std::all_of(value.begin(), value.end(), [](char c) { return c >= '0' && c <= '9'; });
  if (digits) return std::chrono::seconds(std::min(parse_int(value).value_or(kLongest), kLongest));
  const auto date = parse_http_date(value);
  if (!date) return std::nullopt;
  // A date in the past means now.
  return std::chrono::seconds(std::clamp<std::int64_t>(*date - now, 0, kLongest));
}

}  // namespace lockstep::http
