// The job that a previous coordinator left: the round that goes on here, and the wait for its
// nodes. The round goes on if each node comes over or had finished. Pure.
#pragma once

#include "rendezvous/hub/coordinator_settings.h"
#include "rendezvous/hub/current_round.h"
#include "rendezvous/hub/seats.h"

#include <optional>
#include <string>
#include <vector>

namespace lockstep::rendezvous::hub {

class Inheritance {
 public:
  explicit Inheritance(const CoordinatorSettings& settings) : left_(settings) {}

  // Returns whether the node comes from the last round of the previous coordinator.
  bool has_round_of(const Join& offer) const;
  // Returns that round, and waits for its nodes from now on.
  CurrentRound adopt(const Join& offer, Time now);
  bool adopting() const { return since_.has_value(); }
  // Returns until when the missing ranks are waited for. The lost leader is not waited for. The
  // other nodes get more time if the job has not `enough` nodes without them.
  Time ends(const std::vector<int>& missing, bool enough) const;
  void settle() { since_.reset(); }
  std::string why_missing(const std::vector<int>& ranks, std::size_t size) const;

  bool taken_over() const { return left_.takeover; }
  // Returns whether all nodes of the last round but one have joined. One loss is expected: the
  // leader's, which caused the takeover.
  static bool survivors_are_here(const Seats::Nodes& joined);
  // Returns how long to wait for more nodes. Survivors of a takeover wait only briefly. A new job,
  // or one without survivors, uses the user's last call timeout.
  Ms last_call(const Seats::Nodes& joined) const;

 private:
  CoordinatorSettings left_;
  std::optional<Time> since_;  // set until all nodes of an adopted round have come over
};

}  // namespace lockstep::rendezvous::hub
