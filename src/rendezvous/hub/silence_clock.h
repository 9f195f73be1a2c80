// The clock that measures the silence of nodes. It stands still while this process is stopped.
// Otherwise the pause would look like silence of the nodes. Pure.
#pragma once

#include "rendezvous/hub/coordinator_settings.h"

#include <algorithm>

namespace lockstep::rendezvous::hub {

class SilenceClock {
 public:
  SilenceClock(Ms heartbeat, Time now) : heartbeat_(heartbeat), last_tick_(now) {}

  void tick(Time now) {
    watched_ = read(now);
    last_tick_ = now;
  }
  // Returns the reading for a sign of life that comes now.
  Ms read(Time now) const { return watched_ + counted(now); }
  // Returns the reading and the time of the last tick.
  Ms at_tick() const { return watched_; }
  Time last_tick() const { return last_tick_; }

 private:
  // Returns how much of the time since the last tick counts. A gap of more than 1.5 heartbeats
  // means that this process was stopped. Frames sent meanwhile lie unread in the sockets, so only
  // half a heartbeat of the gap counts.
  Ms counted(Time now) const {
    const Ms passed = std::chrono::duration_cast<Ms>(now - last_tick_);
    return passed > heartbeat_ * 3 / 2 ? heartbeat_ / 2 : std::max(passed, Ms(0));
  }

  Ms heartbeat_;
  Time last_tick_;
  Ms watched_{0};
};

}  // namespace lockstep::rendezvous::hub
