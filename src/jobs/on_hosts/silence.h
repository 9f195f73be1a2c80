// How long nothing can have been heard of hosts, counting the time in which this machine slept or
// this process stood still. Pure: the clock is handed in.
#pragma once

#include <chrono>
#include <optional>

namespace lockstep::jobs::on_hosts {

class Silence {
 public:
  using Ms = std::chrono::milliseconds;

  explicit Silence(Ms now) : last_(now) {}

  // Every kTick while the process runs. connected: all are met, and no connection is known to be
  // broken.
  void on_tick(Ms now, bool connected) {
    // A connection that broke meanwhile is known to be so only some time after waking.
    if (now - last_ > kGap) believed_from_ = now + kDoubt;
    last_ = now;
    if (connected && now >= believed_from_) heard_ = now;
  }
  // Of hosts that were never met: for ever.
  Ms lasted(Ms now) const { return heard_ ? now - *heard_ : Ms::max(); }

  static constexpr Ms kTick{5'000};

 private:
  static constexpr Ms kGap{20'000};
  static constexpr Ms kDoubt{30'000};  // ssh notices within 15 s, three unanswered questions

  Ms last_;
  std::optional<Ms> heard_;
  Ms believed_from_{0};
};

}  // namespace lockstep::jobs::on_hosts
