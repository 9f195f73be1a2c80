// Money as whole millionths of a US dollar: sums are exact, and nothing is rounded before it is
// printed.
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

// "3.29" for people: at least `digits` after the point, more only below a cent.
std::string dollars_text(Micros amount, int digits = 2);

// "30", "3.5", "$3.50", up to six digits after the point; not negative.
Result<Micros> parse_dollars(std::string_view text);

// A price an hour for so long, rounded up to a whole millionth.
Micros cost_of(Micros per_hour, std::int64_t ms);

}  // namespace lockstep::cloud
