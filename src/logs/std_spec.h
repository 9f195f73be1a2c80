// The values of -r/--redirects and -t/--tee: the streams of each worker that an option applies to.
#pragma once

#include "base/error.h"

#include <map>
#include <string_view>

namespace lockstep::logs {

enum class Std : int { none = 0, out = 1, err = 2, all = 3 };

constexpr Std operator|(Std a, Std b) {
  return static_cast<Std>(static_cast<int>(a) | static_cast<int>(b));
}
constexpr bool has(Std set, Std stream) {
  return (static_cast<int>(set) & static_cast<int>(stream)) != 0;
}

// A value for all local ranks, or values for some ranks (none for the rest).
struct StdSpec {
  Std every = Std::none;
  std::map<int, Std> by_rank;  // empty when `every` holds

  Std of(int local_rank) const {
    if (by_rank.empty()) return every;
    const auto found = by_rank.find(local_rank);
    return found == by_rank.end() ? Std::none : found->second;
  }
};

// Parses "0".."3", or "rank:value,rank:value" with ranks of any length. Fails with invalid_input
// and torchrun's text ("4 does not match: <^[0123]$> or ...").
Result<StdSpec> parse_std_spec(std::string_view text);

}  // namespace lockstep::logs
