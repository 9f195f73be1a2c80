// Times in HTTP headers. Pure.
#pragma once

#include "http/response_parse.h"

#include <chrono>
#include <cstdint>
#include <optional>
#include <string_view>

namespace lockstep::http {

// Parses "Sun, 06 Nov 1994 08:49:37 GMT" and the two older forms. Returns Unix time.
std::optional<std::int64_t> parse_http_date(std::string_view text);

// Returns how long the server wants us to wait (Retry-After: seconds or a date), counted from `now`
// (Unix time), at most a day. nullopt: no such header.
std::optional<std::chrono::seconds> retry_after(const ResponseHead& head, std::int64_t now);

}  // namespace lockstep::http
