// Folds numbers into ranges, and unfolds them.
#include "base/number_ranges.h"

#include "base/text.h"

#include <fmt/core.h>

#include <cstdint>
#include <limits>

namespace lockstep {
namespace {

// Parses a number of a range. parse_int() alone would also accept signs and underscores.
std::optional<int> parse_bound(std::string_view text) {
  if (text.empty() || text.find_first_not_of("0123456789") != std::string_view::npos)
    return std::nullopt;
  const auto number = parse_int(text);
  if (!number || *number > std::numeric_limits<int>::max()) return std::nullopt;
  return static_cast<int>(*number);
}

}  // namespace

std::string ranges_text(std::span<const int> sorted, std::size_t most) {
  std::string text;
  std::size_t count = 0;
  for (std::size_t i = 0; i < sorted.size(); ++count) {
    if (count == most) return text + ", ...";
    std::size_t last = i;
    while (last + 1 < sorted.size() && std::int64_t{sorted[last + 1]} - 1 == sorted[last])
      ++last;
    if (i > 0) text += ", ";
    text += last == i ? std::to_string(sorted[i]) : fmt::format("{}-{}", sorted[i], sorted[last]);
    i = last + 1;
  }
  return text;
}

std::optional<std::vector<int>> parse_ranges(std::string_view text, std::size_t most) {
  std::vector<int> out;
  if (strip(text).empty()) return out;
  while (true) {
    const std::size_t comma = text.find(',');
    const std::string_view range = strip(text.substr(0, comma));
    const std::size_t dash = range.find('-');
    const auto first = parse_bound(range.substr(0, dash));
    const auto last = dash == std::string_view::npos ? first : parse_bound(range.substr(dash + 1));
    if (!first || !last || *last < *first) return std::nullopt;
    // Check before the loop: "0-2000000000" must cost nothing.
    if (static_cast<std::size_t>(*last - *first) >= most - out.size()) return std::nullopt;
    for (std::int64_t number = *first; number <= *last; ++number)
      out.push_back(static_cast<int>(number));
    if (comma == std::string_view::npos) return out;
    text.remove_prefix(comma + 1);
  }
}

}  // namespace lockstep
