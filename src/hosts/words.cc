#include "hosts/words.h"

#include "base/text.h"

#include <fmt/core.h>

#include <array>
#include <optional>
#include <vector>

namespace lockstep::hosts {
namespace {

// A cluster of thousands with every second host failed must still give one readable line.
constexpr std::size_t kMostRanges = 8;

// The parts of a name like "gpus-12".
struct Numbered {
  std::string stem;
  std::int64_t number = 0;
};
// nullopt: the name does not end in '-' and a number, as an address does not. Nine digits always
// fit.
std::optional<Numbered> numbered(const std::string& name) {
  const std::size_t at = name.find_last_not_of("0123456789") + 1;
  if (at == 0 || at == name.size() || name.size() - at > 9 || name[at - 1] != '-')
    return std::nullopt;
  return Numbered{name.substr(0, at), *parse_int(name.substr(at))};
}

}  // namespace

std::string memory_text(std::int64_t bytes) {
  constexpr std::array<const char*, 5> kUnits = {"KiB", "MiB", "GiB", "TiB", "PiB"};
  auto value = static_cast<double>(bytes) / 1024;
  std::size_t unit = 0;
  for (; value >= 1024 && unit + 1 < kUnits.size(); ++unit)
    value /= 1024;
  // 9.96 would be printed as "10.0".
  return value < 9.95 ? fmt::format("{:.1f} {}", value, kUnits[unit])
                      : fmt::format("{:.0f} {}", value, kUnits[unit]);
}

std::string names_text(std::span<const std::string> names) {
  std::vector<std::string> ranges;
  for (std::size_t i = 0; i < names.size();) {
    std::size_t last = i;
    const auto first = numbered(names[i]);
    while (first && last + 1 < names.size()) {
      const auto next = numbered(names[last + 1]);
      if (!next || next->stem != first->stem ||
          next->number != first->number + static_cast<std::int64_t>(last + 1 - i))
        break;
      ++last;
    }
    // Two names in a row stay two names: "a-0 to a-1" is longer and says less.
    if (last > i + 1)
      ranges.push_back(fmt::format("{} to {}", names[i], names[last]));
    else
      ranges.insert(ranges.end(), names.begin() + static_cast<std::ptrdiff_t>(i),
                    names.begin() + static_cast<std::ptrdiff_t>(last + 1));
    i = last + 1;
  }
  if (ranges.size() > kMostRanges) {
    ranges.resize(kMostRanges);
    ranges.push_back(fmt::format("... ({} in all)", names.size()));
  }
  return join(ranges, ", ");
}

}  // namespace lockstep::hosts
