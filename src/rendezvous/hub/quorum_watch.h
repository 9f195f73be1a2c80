// How long a hub may go on without a quorum. The other nodes may go on elsewhere, so the nodes at
// this hub must look for another one. Pure.
#pragma once

#include "rendezvous/hub/coordinator_settings.h"
#include "rendezvous/hub/ledger.h"

#include <optional>

namespace lockstep::rendezvous::hub {

class QuorumWatch {
 public:
  // dead: a node that is silent for this long is gone.
  explicit QuorumWatch(Ms dead) : dead_(dead) {}

  // Returns whether the hub must give up. leads: its coordinator decides.
  bool must_give_up(const Ledger& ledger, bool leads, Time now) {
    // A hub that gathers is closed by the search of its own node (hub_succession.h). That search is
    // over when the hub records that it leads, and a voter may be lost in that moment.
    const bool fine = leads ? ledger.has_quorum() : !ledger.recording();
    if (fine) {
      since_.reset();
      return false;
    }
    if (!since_) since_ = now;
    // A broken connection is replaced within this time.
    constexpr Ms kGrace{1'000};
    return now - *since_ >= (leads ? kGrace : dead_ + kGrace);
  }

 private:
  Ms dead_;
  std::optional<Time> since_;
};

}  // namespace lockstep::rendezvous::hub
