// The facts that outlive a round of the job and the coordinator: the count of restarts and the end.
// Also requests to record these facts for a successor. Pure.
#pragma once

#include "rendezvous/hub/coordinator_settings.h"
#include "rendezvous/hub/current_round.h"
#include "rendezvous/hub/roster.h"

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

namespace lockstep::rendezvous::hub {

class JobRecord {
 public:
  using End = PermitRequest::End;

  explicit JobRecord(const CoordinatorSettings& settings)
      : fenced_(settings.fenced),
        first_round_(settings.first_round),
        restarts_(settings.restarts) {}

  bool fenced() const { return fenced_; }
  int restarts() const { return restarts_; }
  void set_restarts(int restarts) { restarts_ = restarts; }

  bool over() const { return end_ != End::none; }
  End end() const { return end_; }
  const std::string& why() const { return why_; }
  void end(End end, const std::string& why) {
    end_ = end;
    why_ = why;
  }

  // Requests a record of the state, for a coordinator that follows if this one is lost. `host` is
  // the node of this coordinator. Without fencing no other coordinator can follow.
  void write_down(const CurrentRound* round, const Roster::Member* host);
  // Requests the permission to place a round.
  void ask(std::int64_t round, int lead);
  // Returns the latest request, once.
  std::optional<PermitRequest> take_request() { return std::exchange(request_, {}); }

 private:
  bool fenced_;
  std::int64_t first_round_;
  int restarts_;
  End end_ = End::none;
  std::string why_;
  std::optional<PermitRequest> request_;
};

}  // namespace lockstep::rendezvous::hub
