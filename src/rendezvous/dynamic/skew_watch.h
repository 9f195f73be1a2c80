// Finds nodes whose clock differs much from this node's, by their heartbeats. Lockstep's agents
// tolerate skew, but torchrun's agents would evict one another. Pure.
#pragma once

#include "rendezvous/dynamic/dynamic_state.h"

#include <chrono>
#include <map>
#include <optional>
#include <set>

namespace lockstep::rendezvous::dynamic {

class SkewWatch {
 public:
  // limit: report a difference of at least this.
  explicit SkewWatch(std::chrono::seconds limit) : limit_(limit) {}

  struct Skew {
    Node node;
    std::chrono::seconds ahead{0};  // negative: behind
  };
  // Returns a node not reported before and the lead of its clock over `now`. Judges only heartbeats
  // that have changed since the previous look.
  std::optional<Skew> look(const RendezvousState& state, const Node& self, UtcTime now);

 private:
  std::chrono::seconds limit_;
  std::optional<UtcTime> last_look_;
  std::map<Node, UtcTime> seen_;
  std::set<Node> told_;
};

}  // namespace lockstep::rendezvous::dynamic
