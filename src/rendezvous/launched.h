// The program a node launches, as told among the agents to keep strangers out of a job: the
// program's name, never its arguments. Pure.
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
  int arguments = 0;    // number of arguments
  bool any = false;     // --rdzv-conf entrypoint=any
  std::string version;  // of Lockstep
  bool operator==(const Launched&) const = default;
};

// Returns the base name of `program`, as given by the user. Empty if the name has no meaning on
// other nodes: a pipe of the shell.
std::string launched_name(std::string_view program);

// A node as known to the other nodes.
struct NodeFacts {
  std::string called;
  std::string role = "default";
  Launched launched;
  int local_world_size = 1;
  std::optional<int> max_restarts;  // nullopt: not told
};

// Returns the error that names both programs if the nodes cannot belong to one job.
std::optional<Error> other_program(const NodeFacts& node, const NodeFacts& other,
                                   std::string_view run_id);

// Returns the other differences between the nodes of a round, one line each.
inline constexpr std::size_t kMostNotes = 16;
std::vector<std::string> differences(std::span<const NodeFacts> nodes);

}  // namespace lockstep::rendezvous
