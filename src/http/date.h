// Times as servers write them into headers: pure.
#pragma once

#include "http/response_parse.h"

#include <chrono>
#include <cstdint>
#include <optional>
#include <string_view>

namespace lockstep::http {

// "Sun, 06 Nov 1994 08:49:37 GMT" and the two older forms, as Unix time.
std::optional<std::int64_t> parse_http_date(std::string_view text);

// How long the server asks us to wait (Retry-After: seconds, or a date), from `now` (Unix time) on;
// at most a day. Nothing: it doesn't say.
std::optional<std::chrono::seconds> retry_after(const ResponseHead& head, std::int64_t now);

}  // namespace lockstep::http
