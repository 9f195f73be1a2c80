// What a node launches, as the agents of a job tell one another so that no stranger takes part or
// waits as a spare: the name of the program, never its arguments. Pure.
#pragma once

#include "base/error.h"

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::rendezvous {

struct Launched {
  std::string name;     // base name of the program or script, or the module; empty: not told
  int arguments = 0;    // how many
  bool any = false;     // --rdzv-conf entrypoint=any
  std::string version;  // of Lockstep
  bool operator==(const Launched&) const = default;
};

// `program` as it was given. Empty where the name means nothing elsewhere: a pipe of the shell.
std::string launched_name(std::string_view program);

// A node as the others know it.
struct NodeFacts {
  std::string called;
  std::string role = "default";
  Launched launched;
  int local_world_size = 1;
  std::optional<int> max_restarts;  // nullopt: not told
};

// Where they can't be nodes of one job: who launches what.
std::optional<Error> other_program(const NodeFacts& node, const NodeFacts& other,
                                   std::string_view run_id);

// Other differences between the nodes of a round, a line each.
inline constexpr std::size_t kMostNotes = 16;
std::vector<std::string> differences(std::span<const NodeFacts> nodes);

}  // namespace lockstep::rendezvous
