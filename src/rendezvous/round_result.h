// What a finished rendezvous gives its agents. Immutable.
#pragma once

#include "rendezvous/node.h"

#include <cstdint>
#include <string>
#include <vector>

namespace lockstep::rendezvous {

struct RoundResult {
  std::int64_t round = 0;
  std::size_t rank = 0;
  std::size_t world = 1;    // nodes
  std::vector<Node> nodes;  // by rank
  // Before every key that the round's agents share: "torch.rendezvous.ID.ROUND/".
  std::string prefix;
};

}  // namespace lockstep::rendezvous
