// Which rank each node of a round gets. Pure.
#pragma once

#include "rendezvous/dynamic/dynamic_state.h"

#include <cstdint>
#include <map>

namespace lockstep::rendezvous::dynamic {

// In: 1 + the rank that the node had in the round before, 0 for none. Out: the ranks, 0 to n-1. By
// address alone where a node is not a Lockstep agent.
void assign_seats(std::map<Node, std::int64_t>& participants, RankOrder rule);

}  // namespace lockstep::rendezvous::dynamic
