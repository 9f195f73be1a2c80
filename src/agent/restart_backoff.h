// How long a restart is held back: a script that dies at once would otherwise use up all restarts
// within a second. Pure. Every node of a job sees the same attempts, so all of them come to the
// same pause without a word between them.
#pragma once

#include <algorithm>
#include <chrono>
#include <optional>

namespace lockstep::agent {

class RestartBackoff {
 public:
  using Clock = std::chrono::steady_clock;
  using Duration = std::chrono::milliseconds;
  static constexpr Duration kFirst{500};
  // An attempt that lived so long did something: the restart after it is immediate again.
  static constexpr std::chrono::seconds kHealthy{10};

  // longest: what the pause doubles up to; 0: no restart is held back.
  explicit RestartBackoff(Duration longest) : longest_(longest) {}

  void started(Clock::time_point now) {
    started_ = now;
    ended_.reset();
  }
  // The first call of an attempt counts: how long its workers took to stop is not life.
  void ended(Clock::time_point now) {
    if (!ended_) ended_ = now;
  }

  // Asked once for each restart that is counted.
  Duration pause(Clock::time_point now) {
    if (!started_) return Duration::zero();  // this node was not there
    const bool healthy = ended_.value_or(now) - *started_ >= kHealthy;
    short_attempts_ = healthy ? 0 : short_attempts_ + 1;
    if (short_attempts_ < 2) return Duration::zero();
    Duration pause = kFirst;
    for (int i = 2; i < short_attempts_ && pause < longest_; ++i)
      pause *= 2;
    return std::min(pause, longest_);
  }

  // In a row, the last one included.
  int short_attempts() const { return short_attempts_; }

 private:
  Duration longest_;
  std::optional<Clock::time_point> started_;
  std::optional<Clock::time_point> ended_;
  int short_attempts_ = 0;
};

}  // namespace lockstep::agent
