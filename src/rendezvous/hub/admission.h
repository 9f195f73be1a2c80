// Decides whether a join fits: node counts, program and node rank must agree with the rendezvous
// and with the nodes present. Holds a join back while its host may be waiting for itself. Pure.
#pragma once

#include "rendezvous/hub/coordinator_settings.h"
#include "rendezvous/hub/roster.h"

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace lockstep::rendezvous::hub {

class Admission {
 public:
  explicit Admission(const CoordinatorSettings& settings)
      : run_id_(settings.run_id), min_nodes_(settings.min_nodes), max_nodes_(settings.max_nodes) {}

  struct Comparison {
    std::optional<Refusal> refusal;  // of the join
    // Nodes present that must go instead: they launch another program and never took part.
    std::vector<std::pair<PeerId, Refusal>> strangers;
  };
  // Compares the node counts and the program.
  Comparison compare(const Roster::Member& member, const Join& join, const Roster& roster) const;
  // Refuses a node rank that another node has.
  static std::optional<Refusal> same_node_rank(const Roster::Member& member, const Join& join,
                                               const Roster& roster);

  // Holds a join if a node with the same name and address has its node rank. A host that was
  // switched off and on again may join before the hub notices that the host's old connection is
  // dead. So the join waits until the old connection is lost (the join succeeds) or sends bytes
  // (two agents run on that host: same_node_rank() refuses the join). `now` is on the SilenceClock.
  // Returns whether the join was taken.
  bool hold(const Roster::Member& member, Join& join, const Roster& roster, Ms now);
  std::vector<PeerId> holding() const;
  // Returns the held join, for another attempt; nullopt: none is held.
  std::optional<Join> release(PeerId peer);
  void forget(PeerId peer) { held_.erase(peer); }

 private:
  struct Held {
    std::optional<Join> join;
    Ms since{0};
  };

  std::string run_id_;
  std::size_t min_nodes_;
  std::size_t max_nodes_;
  std::map<PeerId, Held> held_;
};

}  // namespace lockstep::rendezvous::hub
