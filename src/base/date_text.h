// Moments and times for people.
#pragma once

#include <cstdint>
#include <string>

namespace lockstep {

// "2026-11-22 13:02:17", local time; 19 characters.
std::string date_text(std::int64_t unix_ms);
// Returns "6 h", "1 h 30 min" or "45 s". Drops the seconds from one hour on.
std::string time_words(std::int64_t seconds);

}  // namespace lockstep
