// Which nodes get the lowest ranks. Every backend has orders that it can keep, and one of its own.
#pragma once

namespace lockstep::rendezvous {

enum class RankOrder {
  host,       // the node that hosts the meeting place, then by address
  node_rank,  // --node-rank; nodes without one come last
  address,
  arrival,
};

}  // namespace lockstep::rendezvous
