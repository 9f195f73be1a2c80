// How long a node searches for a new hub. Time in which the process was stopped does not count: the
// process has not searched meanwhile, and may be needed for a quorum. Pure.
#pragma once

#include "rendezvous/hub/coordinator_settings.h"

#include <optional>

namespace lockstep::rendezvous::hub {

class SearchPatience {
 public:
  // Without a limit until the next begin().
  void begin_unbounded() {
    until_.reset();
    planned_.reset();
  }
  void begin(Ms patience, Time now) {
    until_ = now + patience;
    planned_.reset();
  }
  // The search plans its next step for this time. A step may come earlier.
  void plan(Time next) { planned_ = next; }
  // Takes a step. Returns whether the patience is over.
  bool is_over(Time now) {
    if (!until_) return false;
    if (planned_ && now > *planned_ + kLate) *until_ += now - *planned_;
    planned_.reset();
    return now >= *until_;
  }

 private:
  static constexpr Ms kLate{1'000};  // the loop of a running process is never so late

  std::optional<Time> until_;
  std::optional<Time> planned_;
};

}  // namespace lockstep::rendezvous::hub
