// What compiled code may use on a node: its CPUs' instruction set and its GPUs' architectures; and
// what several nodes have in common.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::setup {

struct NodeAbility {
  std::string node = {};
  int level = 0;                       // of cpu_level.h; kNative: it is no x86-64
  std::vector<int> capabilities = {};  // of its GPUs, ascending, each once

  bool operator==(const NodeAbility&) const = default;
};

// As nvidia-smi tells them, else by the GPUs' names.
std::vector<int> capabilities_here();
NodeAbility ability_here(const std::string& node);

// "ability: n1 x86-64-v3 8.0;9.0". Pure, as all that follows.
std::string ability_text(const NodeAbility& ability);
// nullopt: it is another line.
std::optional<NodeAbility> ability_from(std::string_view line);

// For a build that is to run on all of them. wanted: nodes that there are; where some have not
// answered, no more than x86-64-v3 is taken for granted.
struct CommonAbility {
  std::string isa = {};   // for --isa; empty: nothing is known
  std::string arch = {};  // for --arch; empty: no GPU has answered
};
CommonAbility common_ability(const std::vector<NodeAbility>& nodes, std::size_t wanted);

}  // namespace lockstep::setup
