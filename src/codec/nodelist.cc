// Expands Slurm's lists of nodes.
#include "codec/nodelist.h"

#include "base/text.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstdint>
#include <optional>

namespace lockstep::codec {
namespace {

using Names = std::vector<std::string>;

// Limits for a list: a short text may name billions of nodes.
constexpr std::size_t kMaxDigits = 18;  // such a number fits into 64 bits
constexpr std::size_t kMaxBrackets = 8;
constexpr std::size_t kMaxNameBytes = 256;

Failure malformed(std::string_view text, std::string_view why) {
  return fail(Errc::invalid_input,
              fmt::format("'{}' is not a list of nodes: {}", printable(text, 80), why));
}

bool in_node_name(char c) {
  return c > ' ' && c != 0x7F && c != '[' && c != ']';
}

// Slurm treats white space like a comma.
bool separates(char c) {
  return c == ',' || c == ' ' || c == '\t' || c == '\n';
}

// Makes room for `more` names. reserve() with the exact size would move all names for every single
// name.
void make_room(Names& names, std::size_t more) {
  if (names.capacity() - names.size() < more)
    names.reserve(std::max(names.size() + more, 2 * names.capacity()));
}

std::optional<std::int64_t> number(std::string_view digits) {
  if (digits.empty() || digits.size() > kMaxDigits) return std::nullopt;
  if (digits.find_first_not_of("0123456789") != std::string_view::npos) return std::nullopt;
  return parse_int(digits);
}

std::string padded(std::int64_t value, std::size_t width) {
  std::string digits = std::to_string(value);
  if (digits.size() < width) digits.insert(0, width - digits.size(), '0');
  return digits;
}

// Expands the inside of a bracket, "1-3,07", in order. Pads the numbers of a range with zeros to
// the width of its first number.
Result<Names> expand_ranges(std::string_view inside) {
  Names values;
  for (const std::string& range : split(inside, ',')) {
    const std::size_t dash = range.find('-');
    const std::string first = range.substr(0, dash);
    const auto low = number(first);
    const auto high = dash == std::string::npos ? low : number(range.substr(dash + 1));
    if (!low || !high) return malformed(range, "brackets hold numbers and ranges");
    if (*low > *high) return malformed(range, "the range runs backwards");
    if (static_cast<std::size_t>(*high - *low) >= kMaxNodelistHosts - values.size())
      return malformed(range, "too many nodes");
    make_room(values, static_cast<std::size_t>(*high - *low) + 1);
    for (std::int64_t value = *low; value <= *high; ++value)
      values.push_back(padded(value, first.size()));
  }
  return values;
}

// A name cut at its brackets: texts[0] values[0] texts[1] values[1] ... texts[n].
struct Pattern {
  Names texts = Names(1);
  std::vector<Names> values;
};

Result<Pattern> parse_pattern(std::string_view item) {
  Pattern pattern;
  for (std::size_t at = 0; at < item.size(); ++at) {
    if (item[at] != '[') {
      if (!in_node_name(item[at])) return malformed(item, "an odd character in a name");
      pattern.texts.back() += item[at];
      continue;
    }
    const std::size_t end = item.find(']', at);
    if (end == std::string_view::npos) return malformed(item, "a bracket is not closed");
    if (pattern.values.size() == kMaxBrackets) return malformed(item, "too many brackets");
    LOCKSTEP_TRY_ASSIGN(Names values, expand_ranges(item.substr(at + 1, end - at - 1)));
    pattern.values.push_back(std::move(values));
    pattern.texts.emplace_back();
    at = end;
  }
  return pattern;
}

Status expand_pattern(const Pattern& pattern, std::string_view item, Names& names) {
  std::size_t count = 1;
  // Check the product before building any name.
  for (const Names& values : pattern.values) {
    count *= values.size();
    if (count > kMaxNodelistHosts - names.size()) return malformed(item, "too many nodes");
  }
  const std::size_t brackets = pattern.values.size();
  std::vector<std::size_t> order;  // indices of brackets, fastest first
  order.reserve(brackets);
  // Slurm varies the last bracket fastest, then the others from the left.
  if (brackets > 0) order.push_back(brackets - 1);
  for (std::size_t i = 0; i + 1 < brackets; ++i)
    order.push_back(i);
  std::vector<std::size_t> at(brackets, 0);
  make_room(names, count);
  for (std::size_t made = 0; made < count; ++made) {
    std::string name = pattern.texts.front();
    for (std::size_t i = 0; i < brackets; ++i)
      name.append(pattern.values[i][at[i]]).append(pattern.texts[i + 1]);
    if (name.size() > kMaxNameBytes) return malformed(item, "a name is too long");
    names.push_back(std::move(name));
    for (const std::size_t i : order) {
      // Count like an odometer whose wheels turn in `order`.
      if (++at[i] < pattern.values[i].size()) break;
      at[i] = 0;
    }
  }
  return {};
}

}  // namespace

Result<std::vector<std::string>> expand_nodelist(std::string_view text) {
  if (text.size() > kMaxNodelistBytes) return malformed(text, "it is too long");
  Names names;
  for (std::size_t start = 0; start < text.size();) {
    // An item ends at the next separator outside of brackets.
    std::size_t end = start;
    for (bool inside = false; end < text.size() && (inside || !separates(text[end])); ++end) {
      if (text[end] == '[') inside = true;
      if (text[end] == ']') inside = false;
    }
    const std::string_view item = text.substr(start, end - start);
    start = end + 1;
    if (item.empty()) continue;
    LOCKSTEP_TRY_ASSIGN(const Pattern pattern, parse_pattern(item));
    LOCKSTEP_TRY(expand_pattern(pattern, item, names));
  }
  if (names.empty()) return malformed(text, "it has no name");
  return names;
}

}  // namespace lockstep::codec
