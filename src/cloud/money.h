// Money as whole millionths of a US dollar. Sums are exact; only printing rounds.
#pragma once

#include "base/error.h"

#include <cstdint>
#include <string>
#include <string_view>

namespace lockstep::cloud {

using Micros = std::int64_t;

inline constexpr Micros kDollar = 1'000'000;
inline constexpr std::int64_t kMsPerHour = 3'600'000;
inline constexpr std::int64_t kHoursPerMonth = 730;  // as the providers count

// Returns "3.29" for people: `digits` after the point, more only below a cent.
std::string dollars_text(Micros amount, int digits = 2);

// Parses "30", "3.5" or "$3.50": not negative, at most six digits after the point.
Result<Micros> parse_dollars(std::string_view text);

// Returns the cost of a time in ms at an hourly price, rounded up to a whole millionth.
Micros cost_of(Micros per_hour, std::int64_t ms);

}  // namespace lockstep::cloud
