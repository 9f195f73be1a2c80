// Finds nodes whose clock is far from this one's, by their heartbeats. Lockstep's agents don't
// mind, but torchrun's would take one another for dead. Pure.
#pragma once

#include "rendezvous/dynamic/dynamic_state.h"

#include <chrono>
#include <map>
#include <optional>
#include <set>

namespace lockstep::rendezvous::dynamic {

class SkewWatch {
 public:
  // limit: what is far. Heartbeats are fresh when they have changed since the look before.
  explicit SkewWatch(std::chrono::seconds limit) : limit_(limit) {}

  struct Skew {
    Node node;
    std::chrono::seconds ahead{0};  // negative: behind
  };
  // A node not told of before, with what its clock is ahead of `now`.
  std::optional<Skew> look(const RendezvousState& state, const Node& self, UtcTime now);

 private:
  std::chrono::seconds limit_;
  std::optional<UtcTime> last_look_;
  std::map<Node, UtcTime> seen_;
  std::set<Node> told_;
};

}  // namespace lockstep::rendezvous::dynamic
