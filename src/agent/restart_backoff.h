// The pause before a restart. Without a pause, a script that dies at once would use up all restarts
// within a second. Pure. Every node of a job sees the same attempts, so all nodes compute the same
// pause without exchanging a message.
#pragma once

#include "base/backoff.h"

#include <chrono>
#include <optional>

namespace lockstep::agent {

class RestartBackoff {
 public:
  using Clock = std::chrono::steady_clock;
  using Duration = std::chrono::milliseconds;
  static constexpr Duration kFirst{500};
  // An attempt of at least this length counts as healthy: the restart after it is immediate.
  static constexpr std::chrono::seconds kHealthy{10};

  // longest: upper limit of the doubling pause. 0: restarts are never held back.
  explicit RestartBackoff(Duration longest) : pauses_({.first = kFirst, .longest = longest}) {}

  void started(Clock::time_point now) {
    started_ = now;
    ended_.reset();
  }
  // Only the first call of an attempt counts: the time that workers take to stop is not part of
  // their life.
  void ended(Clock::time_point now) {
    if (!ended_) ended_ = now;
  }

  // Returns the pause before a restart. Call exactly once for each counted restart.
  Duration pause(Clock::time_point now) {
    if (!started_) return Duration::zero();  // this node joined after that attempt
    const bool healthy = ended_.value_or(now) - *started_ >= kHealthy;
    short_attempts_ = healthy ? 0 : short_attempts_ + 1;
    if (healthy) pauses_.reset();
    return short_attempts_ < 2 ? Duration::zero() : pauses_.next();
  }

  // Number of short attempts in a row, including the last one.
  int short_attempts() const { return short_attempts_; }

 private:
  Backoff pauses_;
  std::optional<Clock::time_point> started_;
  std::optional<Clock::time_point> ended_;
  int short_attempts_ = 0;
};

}  // namespace lockstep::agent
