// How often each signal was meant. One that is sent to every process of a job (a scheduler, a
// process group) reaches the agent twice: directly and passed on by the guardian. Pure.
#pragma once

#include <algorithm>
#include <chrono>
#include <map>

namespace lockstep::agent {

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

}  // namespace lockstep::agent
