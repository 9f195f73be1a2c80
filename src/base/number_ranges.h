// Lists of numbers as ranges: "0-6, 8".
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep {

// Formats sorted numbers. Beyond `most` ranges the text ends with ", ...".
std::string ranges_text(std::span<const int> sorted, std::size_t most = 64);

// Parses what ranges_text() prints, for numbers that are not negative. nullopt: malformed, or more
// than `most` numbers.
std::optional<std::vector<int>> parse_ranges(std::string_view text, std::size_t most);

}  // namespace lockstep
