// Times as providers write and read them. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace lockstep::cloud {

// "2026-11-23T06:00:00Z", with a fraction of a second and "+01:00" as well. Unix milliseconds.
std::optional<std::int64_t> parse_iso_time(std::string_view text);
// "2026-11-23T06:00:00Z"
std::string iso_time(std::int64_t unix_ms);

}  // namespace lockstep::cloud
