// Measures how long ago all hosts were last heard for certain. The time in which this machine
// slept, or this process was stopped, counts too. Pure: the caller passes the clock.
#pragma once

#include <chrono>
#include <optional>

namespace lockstep::jobs::on_hosts {

class Silence {
 public:
  using Ms = std::chrono::milliseconds;

  explicit Silence(Ms now) : last_(now) {}

  // Call this every kTick. connected: all hosts were met, and no connection is known to be broken.
  void on_tick(Ms now, bool connected) {
    // After a gap a broken connection is noticed only some time after waking: do not believe it
    // until then.
    if (now - last_ > kGap) believed_from_ = now + kDoubt;
    last_ = now;
    if (connected && now >= believed_from_) heard_ = now;
  }
  // Returns Ms::max() if the hosts were never met.
  Ms lasted(Ms now) const { return heard_ ? now - *heard_ : Ms::max(); }

  static constexpr Ms kTick{5'000};

 private:
  static constexpr Ms kGap{20'000};
  // ssh notices a dead link within 15 s, after three unanswered questions.
  static constexpr Ms kDoubt{30'000};

  Ms last_;
  std::optional<Ms> heard_;
  Ms believed_from_{0};
};

}  // namespace lockstep::jobs::on_hosts
