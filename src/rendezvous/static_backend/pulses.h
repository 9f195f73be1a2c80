// What node rank 0 of the static backend knows of the others by the heartbeats that they count in
// its store. Pure; fed at each look with what stands there.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::rendezvous::static_backend {

// In place of a node's count: it is done.
inline constexpr std::string_view kLeft = "left";

class Pulses {
 public:
  // attempts: looks without a new count until a node is silent. Looks, not time: who was frozen
  // itself, and wakes with all counts unread, has missed one.
  explicit Pulses(int attempts) : attempts_(attempts) {}

  void begin(std::size_t nodes) { pulses_.assign(nodes, {}); }
  std::size_t size() const { return pulses_.size(); }
  void look(std::size_t rank, const std::optional<std::string>& count);
  bool silent(std::size_t rank) const { return pulses_.at(rank).missed >= attempts_; }
  bool left(std::size_t rank) const { return pulses_.at(rank).seen == kLeft; }
  // It has said so, or somebody has said so of it.
  void gone(int rank);
  // Nobody else is there to be waited for.
  bool all_gone() const;

 private:
  struct Pulse {
    std::string seen;  // the last count
    int missed = 0;    // looks since then
    bool gone = false;
  };
  int attempts_;
  std::vector<Pulse> pulses_;  // by rank
};

}  // namespace lockstep::rendezvous::static_backend
