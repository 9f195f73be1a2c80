#include "hosts/wait_words.h"

#include "hosts/words.h"

#include <fmt/core.h>

#include <algorithm>

namespace lockstep::hosts {
namespace {
constexpr std::chrono::seconds kFirst{5};
constexpr std::chrono::seconds kLongest{60};
}  // namespace

std::vector<std::string> wait_lines(const std::vector<std::pair<std::string, std::string>>& hosts,
                                    std::chrono::seconds waited) {
  std::vector<std::pair<std::string, std::vector<std::string>>> steps;
  for (const auto& [name, doing] : hosts) {
    auto step = std::find_if(steps.begin(), steps.end(),
                             [&what = doing](const auto& each) { return each.first == what; });
    if (step == steps.end()) step = steps.insert(step, {doing, {}});
    step->second.push_back(name);
  }
  std::vector<std::string> lines;
  lines.reserve(steps.size());
  for (const auto& [doing, names] : steps)
    lines.push_back(
        fmt::format("waiting for {} for {} s: {}", names_text(names), waited.count(), doing));
  return lines;
}

std::chrono::seconds next_notice(std::chrono::seconds waited) {
  // Each pause is as long as the time waited so far: the number of lines grows slowly, and the user
  // still sees one each minute.
  return std::clamp(waited, kFirst, kLongest);
}

}  // namespace lockstep::hosts
