// The CPU instruction set and the GPU architectures of a node, which bound compiled code, and the
// common part of several nodes.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::setup {

struct NodeAbility {
  std::string node = {};
  int level = 0;                       // as in cpu_level.h; kNative: not x86-64
  std::vector<int> capabilities = {};  // of its GPUs, times ten, ascending, each once

  bool operator==(const NodeAbility&) const = default;
};

// Returns the capabilities reported by nvidia-smi, or those known for the GPUs' names. Empty: no
// GPU.
std::vector<int> capabilities_here();
NodeAbility ability_here(const std::string& node);

// Prints "ability: n1 x86-64-v3 8.0;9.0". Pure, like everything below.
std::string ability_text(const NodeAbility& ability);
// Reads a line of ability_text(). nullopt: any other line.
std::optional<NodeAbility> ability_from(std::string_view line);

// The options of a build for all nodes. wanted: the number of nodes in the job. If some have not
// answered, the level is x86-64-v3 at most.
struct CommonAbility {
  std::string isa = {};   // for --isa; empty: no node has answered, or one is not x86-64
  std::string arch = {};  // for --arch; empty: no GPU has been reported
};
CommonAbility common_ability(const std::vector<NodeAbility>& nodes, std::size_t wanted);

}  // namespace lockstep::setup
