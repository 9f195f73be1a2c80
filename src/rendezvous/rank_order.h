// The orders in which nodes can get ranks. Each backend supports some of them and has its own
// default.
#pragma once

namespace lockstep::rendezvous {

enum class RankOrder {
  host,       // the node hosting the meeting point, then by address
  node_rank,  // by --node-rank; nodes without one come last
  address,
  arrival,
};

}  // namespace lockstep::rendezvous
