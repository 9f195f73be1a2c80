// Counts signals, removes duplicates, and interprets a repeated TERM or INT. Pure.
#pragma once

#include <algorithm>
#include <chrono>
#include <map>

namespace lockstep::agent {

// Removes duplicates. A signal that is sent to every process of a job (by a scheduler, or to a
// process group) reaches the agent twice: directly and forwarded by the guardian.
class SignalCounter {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;
  // Both copies arrive within this time. A later signal is a new one.
  static constexpr std::chrono::milliseconds kTogether{100};

  // Returns true if this delivery is a new signal, false if it is the second copy of one just
  // counted.
  bool is_news(int signal, bool passed_on, TimePoint now) {
    Ways& ways = seen_[signal];
    if (now - ways.last > kTogether) ways = Ways{};
    ways.last = now;
    const int before = std::max(ways.direct, ways.passed_on);
    ++(passed_on ? ways.passed_on : ways.direct);
    return std::max(ways.direct, ways.passed_on) > before;
  }

 private:
  struct Ways {
    int direct = 0;
    int passed_on = 0;
    TimePoint last;
  };
  std::map<int, Ways> seen_;
};

// Interprets a repeated TERM or INT. GNU timeout signals its child and then the whole process
// group, and a wrapper forwards a Ctrl-C after the terminal has sent the same signal to us. Two
// requests close together therefore count as one, no matter how they arrived.
class StopRequests {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;
  // A second request counts from this time after the first one on.
  static constexpr std::chrono::milliseconds kApart{300};

  enum class Meaning {
    stop,    // the first request
    same,    // a copy of the first request
    urgent,  // a second request, or a third one at any time
  };

  Meaning on_request(TimePoint now) {
    ++count_;
    if (count_ == 1) first_ = now;
    if (count_ == 1) return Meaning::stop;
    return count_ > 2 || now - first_ >= kApart ? Meaning::urgent : Meaning::same;
  }

 private:
  int count_ = 0;
  TimePoint first_;
};

}  // namespace lockstep::agent
