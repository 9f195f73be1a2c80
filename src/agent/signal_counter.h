// How often each signal was meant, and what a TERM or INT that comes again asks for. Pure.
#pragma once

#include <algorithm>
#include <chrono>
#include <map>

namespace lockstep::agent {

// One that is sent to every process of a job (a scheduler, a process group) reaches the agent
// twice: directly and passed on by the guardian.
class SignalCounter {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;
  // Twins come together; what comes later is another one.
  static constexpr std::chrono::milliseconds kTogether{100};

  // True if this delivery is news, not the twin of one just counted on the other way.
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

// What a TERM or INT asks for. GNU timeout signals its child and then its whole process group, and
// a wrapper passes on a Ctrl-C that the terminal has sent us already: two that come together were
// meant once, by whatever way they came.
class StopRequests {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;
  // The second one counts when it comes this long after the first.
  static constexpr std::chrono::milliseconds kApart{300};

  enum class Meaning {
    stop,    // the first one
    same,    // the first one again
    urgent,  // the second one, or the third whenever it comes
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
