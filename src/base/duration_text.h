// Durations in sentences for people.
#pragma once

#include <cstdint>
#include <string>

namespace lockstep {

// Prints a duration roughly: "45 s", "12 min", "3 h 20 min", "2 days 4 h".
std::string about_text(std::int64_t seconds);

}  // namespace lockstep
