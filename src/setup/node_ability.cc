#include "setup/node_ability.h"

#include "base/text.h"
#include "host/nvidia_smi_command.h"
#include "io/fd.h"
#include "proc/helper_output.h"
#include "setup/cpu_level.h"
#include "setup/gpu_table.h"
#include "setup/toolchain.h"

#include <fmt/core.h>

#include <algorithm>

namespace lockstep::setup {
namespace {

constexpr std::string_view kMark = "ability:";
// x86-64-v3 (AVX2): taken for granted of nodes that have not answered.
constexpr int kUsualLevel = 3;
constexpr std::size_t kLongest = 1000;

void sort_once(std::vector<int>& numbers) {
  std::sort(numbers.begin(), numbers.end());
  numbers.erase(std::unique(numbers.begin(), numbers.end()), numbers.end());
}

std::string archs_of(const std::vector<int>& capabilities) {
  std::vector<Arch> archs;
  archs.reserve(capabilities.size());
  for (const int each : capabilities)
    archs.push_back({each});
  return archs_text(archs);
}

}  // namespace

std::vector<int> capabilities_here() {
  std::vector<int> found;
  for (const auto& row : host::parse_nvidia_smi_capabilities(
           proc::helper_output(host::nvidia_smi_capability_command()).value_or("")))
    found.push_back(row.capability);
  // Older drivers do not report the capability: use the GPUs' names.
  if (found.empty())
    for (const auto& row : host::parse_nvidia_smi_query(
             proc::helper_output(host::nvidia_smi_query_command()).value_or("")))
      if (const int capability = capability_of(row.name); capability > 0)
        found.push_back(capability);
  sort_once(found);
  return found;
}

NodeAbility ability_here(const std::string& node) {
  return {node, cpu_level_in(io::read_file("/proc/cpuinfo", 64UL << 20).value_or("")),
          capabilities_here()};
}

std::string ability_text(const NodeAbility& ability) {
  const std::string archs = archs_of(ability.capabilities);
  return fmt::format("{} {} {} {}", kMark, ability.node, isa_text(ability.level),
                     archs.empty() ? "-" : archs);
}

std::optional<NodeAbility> ability_from(std::string_view line) {
  const auto words = split(strip(line), ' ');
  // Other output may be mixed in, so accept nothing but a complete line.
  if (line.size() > kLongest || words.size() != 4 || words[0] != kMark || words[1].empty())
    return std::nullopt;
  const auto level = read_isa(words[2]);
  if (!level) return std::nullopt;
  NodeAbility ability{words[1], *level, {}};
  if (words[3] == "-") return ability;
  const auto archs = read_archs(words[3]);
  if (!archs) return std::nullopt;
  ability.capabilities.reserve(archs->size());
  for (const Arch& each : *archs)
    ability.capabilities.push_back(each.capability);
  sort_once(ability.capabilities);
  return ability;
}

CommonAbility common_ability(const std::vector<NodeAbility>& nodes, std::size_t wanted) {
  if (nodes.empty()) return {};
  int level = nodes.size() < wanted ? kUsualLevel : kHighestLevel;
  std::vector<int> capabilities;
  bool is_x86 = true;
  for (const NodeAbility& each : nodes) {
    is_x86 = is_x86 && each.level != kNative;
    level = std::min(level, each.level);
    capabilities.insert(capabilities.end(), each.capabilities.begin(), each.capabilities.end());
  }
  sort_once(capabilities);
  return {is_x86 ? isa_text(level) : "", archs_of(capabilities)};
}

}  // namespace lockstep::setup
