// The seats of the nodes: which agent has which rank, across rounds. Nodes keep their ranks;
// newcomers take free ranks. Pure.
#pragma once

#include "rendezvous/hub/coordinator_settings.h"
#include "rendezvous/hub/roster.h"

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

namespace lockstep::rendezvous::hub {

class Seats {
 public:
  using Nodes = std::vector<const Roster::Member*>;

  explicit Seats(const CoordinatorSettings& settings)
      : host_(settings.host), max_nodes_(settings.max_nodes), order_(settings.order) {}

  bool empty() const { return agents_.empty(); }
  std::optional<int> rank_of(const Nonce& agent) const;
  // nullptr: the seat is vacant or unknown.
  const Nonce* agent_at(int rank) const;
  // Returns the ranks of seats without an agent.
  std::vector<int> vacant() const;

  // Seats the nodes of a new round by rank.
  void assign(const Nodes& by_rank);
  // Makes vacant seats for a round whose nodes are not known yet.
  void assign_vacant(std::size_t size) { agents_.assign(size, Nonce{}); }
  // Gives the agent a seat that is vacant or its own. Returns false if there is no such seat.
  bool take(int rank, const Nonce& agent);

  // The last round of a job, as its nodes report it.
  struct Past {
    std::int64_t round = -1;
    int restarts = 0;
  };
  // Seats the nodes as in the last round that they report; nullopt: they report none.
  std::optional<Past> inherit(const Nodes& joined);
  // Returns the nodes of the next round by rank, at most max_nodes. A node that gives way has no
  // place if another node can have it. Seats change with assign().
  Nodes fill(const Nodes& joined) const;

 private:
  std::map<Nonce, const Roster::Member*> candidates(const Nodes& joined) const;
  void sort_by_rule(Nodes& nodes) const;

  Nonce host_;
  std::size_t max_nodes_;
  RankOrder order_;
  std::vector<Nonce> agents_;  // by rank
};

}  // namespace lockstep::rendezvous::hub
