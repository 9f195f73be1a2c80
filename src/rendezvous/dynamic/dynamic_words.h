// Texts of the dynamic rendezvous for people: pure functions of what an agent has seen.
#pragma once

#include "rendezvous/dynamic/skew_watch.h"
#include "rendezvous/dynamic/state.h"
#include "rendezvous/rank_exchange.h"
#include "rendezvous/round_result.h"

#include <cstddef>
#include <string>
#include <vector>

namespace lockstep::rendezvous::dynamic {

// Returns the first few names, and how many more there are.
std::string names_of(const std::vector<std::string>& names);

// Returns the warning about a skewed clock. all_ours: only Lockstep agents take part.
std::string skew_text(const SkewWatch::Skew& skew, bool all_ours);

// Returns a warning about a node that was started with another --nnodes than this node's `asked`;
// empty: all agree.
std::string other_nodes_text(const RoundResult& round, const Assignment& made,
                             const std::string& asked);

// The facts known to a node that waits for a round.
struct Waiting {
  const RendezvousState& state;
  const Node& self;
  std::size_t min_nodes;
  std::size_t max_nodes;
  std::string run_id;
  std::string place;
  std::string to_replace;  // the lost node whose place is free
  std::string strangers;
};
// Returns one line for people about what the node waits for.
std::string waiting_text(const Waiting& waiting);

}  // namespace lockstep::rendezvous::dynamic
