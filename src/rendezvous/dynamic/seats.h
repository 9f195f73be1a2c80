// Assigns ranks to the nodes of a round. Pure.
#pragma once

#include "rendezvous/dynamic/dynamic_state.h"

#include <cstdint>
#include <map>

namespace lockstep::rendezvous::dynamic {

// Replaces the numbers in `participants`. In: 1 + the node's previous rank, 0 for none. Out: the
// ranks 0 to n-1. If any node is not Lockstep's, ranks follow the addresses alone.
void assign_seats(std::map<Node, std::int64_t>& participants, RankOrder rule);

}  // namespace lockstep::rendezvous::dynamic
