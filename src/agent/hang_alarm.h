// Decides when a hang is told to the user, and when the agent acts on it. Pure.
#pragma once

#include "io/loop.h"
#include "looks/verdict.h"

#include <chrono>
#include <optional>

namespace lockstep::agent {

class HangAlarm {
 public:
  struct Steps {
    bool tell = false;       // a hang, or ranks that wait for a stopped one
    bool act = false;        // --on-hang may end the attempt now. Never before `tell`
    bool tell_wait = false;  // a wait has become as long as a hang would be
  };

  // Call after each look. asking: flight recorders have not answered yet. hearing: for so long the
  // other nodes may not have heard of an alarm.
  Steps feed(const looks::Verdict& verdict, bool asking, io::Duration hearing, io::TimePoint now);
  void reset() { *this = HangAlarm(); }

 private:
  // For so long a hang is not told while recorders are being asked.
  static constexpr std::chrono::seconds kMostDelay{3};

  std::optional<io::TimePoint> tell_by_ = {};  // nullopt: no hang to tell
  std::optional<io::TimePoint> act_at_ = {};   // nullopt: no hang to act on
  bool wait_told_ = false;
};

}  // namespace lockstep::agent
