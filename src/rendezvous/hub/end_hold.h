// Holds back what tells nodes the good end of the job until that end is recorded. Otherwise some
// nodes could leave with success, and after the loss of this hub the others would find no hub that
// knows the end. Beats and the closing of connections pass: the nodes must not take this hub for
// silent, and the hub must notice silent nodes. Pure.
#pragma once

#include "rendezvous/hub/outbox.h"

#include <utility>
#include <vector>

namespace lockstep::rendezvous::hub {

class EndHold {
 public:
  bool holds() const { return holds_; }
  void begin() { holds_ = true; }
  void release() { holds_ = false; }
  // Another hub decides whether the job has ended. Returns whether anything was held back.
  bool drop() {
    held_.clear();
    return std::exchange(holds_, false);
  }
  // Returns what may be sent now.
  std::vector<Outbox::Output> let_through(std::vector<Outbox::Output> output) {
    std::vector<Outbox::Output> passes;
    if (!holds_) passes = std::exchange(held_, {});
    for (Outbox::Output& one : output)
      (holds_ && one.bytes && !one.is_beat ? held_ : passes).push_back(std::move(one));
    return passes;
  }

 private:
  bool holds_ = false;
  std::vector<Outbox::Output> held_;
};

}  // namespace lockstep::rendezvous::hub
