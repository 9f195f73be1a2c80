// Moments in tables for people.
#pragma once

#include <cstdint>
#include <string>

namespace lockstep {

// "2026-11-22 13:02:17", local time; 19 characters.
std::string date_text(std::int64_t unix_ms);

}  // namespace lockstep
