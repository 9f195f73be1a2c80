// What node rank 0 of the static backend knows of the others by the heartbeats that they count in
// its store. Pure; fed at each look with what stands there.
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
  // attempts: looks without a new count until a node is silent. Looks, not time: who was frozen
  // itself, and wakes with all counts unread, has missed one.
  explicit Pulses(int attempts) : attempts_(attempts) {}

  // All nodes have their places.
  void begin(std::size_t nodes);
  std::size_t size() const { return pulses_.size(); }
  void look(std::size_t rank, const std::optional<std::string>& count);
  bool silent(std::size_t rank) const {
    return !vacant(rank) && pulses_.at(rank).missed >= attempts_;
  }
  bool left(std::size_t rank) const { return !vacant(rank) && pulses_.at(rank).seen == kLeft; }
  // The place is free from that round on: until somebody's heart beats there nobody is missed.
  void vacate(std::size_t rank, std::int64_t round);
  bool vacant(std::size_t rank) const { return pulses_.at(rank).vacant; }
  // The round in which its node took the place, or may take it.
  std::int64_t since(std::size_t rank) const { return pulses_.at(rank).since; }
  // It has said so, or somebody has said so of it.
  void gone(int rank);
  // Nobody else is there to be waited for.
  bool all_gone() const;

 private:
  struct Pulse {
    std::string seen;  // the last count
    int missed = 0;    // looks since then
    bool gone = false;
    bool vacant = false;
    std::int64_t since = 0;
  };
  int attempts_;
  std::vector<Pulse> pulses_;  // by rank
};

}  // namespace lockstep::rendezvous::static_backend
