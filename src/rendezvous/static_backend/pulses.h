// What node rank 0 of the static backend knows about the other nodes from their heartbeat counts.
// Pure; fed with the counts at each look.
#pragma once

#include "rendezvous/static_backend/static_notes.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace lockstep::rendezvous::static_backend {

class Pulses {
 public:
  // attempts: looks without a new count until a node is silent. Counts looks, not time: a host that
  // was frozen wakes up with all counts unread and has missed only one look.
  explicit Pulses(int attempts) : attempts_(attempts) {}

  // Called when all nodes have their places.
  void begin(std::size_t nodes);
  std::size_t size() const { return pulses_.size(); }
  void look(std::size_t rank, const std::optional<std::string>& count);
  bool silent(std::size_t rank) const {
    return !vacant(rank) && pulses_.at(rank).missed >= attempts_;
  }
  bool left(std::size_t rank) const { return !vacant(rank) && pulses_.at(rank).seen == kLeft; }
  // Marks a place as free from `round` on. No node is missed there until a new node's heartbeat
  // shows up.
  void vacate(std::size_t rank, std::int64_t round);
  bool vacant(std::size_t rank) const { return pulses_.at(rank).vacant; }
  // Returns the round in which the node took the place, or may take it.
  std::int64_t since(std::size_t rank) const { return pulses_.at(rank).since; }
  // Marks a node as gone, after its own goodbye or another node's report.
  void gone(int rank);
  // Returns whether no other node is left to wait for.
  bool all_gone() const;

 private:
  struct Pulse {
    std::string seen;  // the last count
    int missed = 0;    // looks since the last change
    bool gone = false;
    bool vacant = false;
    std::int64_t since = 0;
  };
  int attempts_;
  std::vector<Pulse> pulses_;  // by rank
};

}  // namespace lockstep::rendezvous::static_backend
