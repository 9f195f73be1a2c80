// The result of a rendezvous for its agents, before ranks are exchanged. Immutable.
#pragma once

#include "rendezvous/node.h"

#include <cstdint>
#include <string>
#include <vector>

namespace lockstep::rendezvous {

struct RoundResult {
  std::int64_t round = 0;
  std::size_t rank = 0;
  std::size_t world = 1;    // number of nodes
  std::vector<Node> nodes;  // by rank
  // Prefix of every key shared by the round's agents: "torch.rendezvous.ID.ROUND/".
  std::string prefix;
};

}  // namespace lockstep::rendezvous
