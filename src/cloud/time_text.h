// Reads and writes times in the texts of providers. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace lockstep::cloud {

// Parses "2026-11-23T06:00:00Z", also with a fraction of a second or an offset like "+01:00".
// Returns Unix milliseconds.
std::optional<std::int64_t> parse_iso_time(std::string_view text);
// Returns "2026-11-23T06:00:00Z".
std::string iso_time(std::int64_t unix_ms);

}  // namespace lockstep::cloud
