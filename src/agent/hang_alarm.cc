#include "agent/hang_alarm.h"

namespace lockstep::agent {

HangAlarm::Steps HangAlarm::feed(const looks::Verdict& verdict, bool asking, io::Duration hearing,
                                 io::TimePoint now) {
  Steps steps;
  const bool hung = verdict.state == looks::VerdictState::hung;
  if (verdict.alarm_begins) tell_by_ = now + kMostDelay;
  if (!verdict.alarm) {
    tell_by_.reset();
    act_at_.reset();
  }
  if (tell_by_ && (!asking || now >= *tell_by_)) {
    tell_by_.reset();
    steps.tell = true;
    // A user may have stopped a rank on purpose, so only a hang counts.
    if (hung) act_at_ = now + hearing;
  }
  if (act_at_ && now >= *act_at_ && hung) {
    act_at_.reset();
    steps.act = true;
  }
  // One rank works alone while the others wait: a fact, not an alarm. It is told once.
  const bool waits = verdict.state == looks::VerdictState::waiting && verdict.limit.count() > 0 &&
                     verdict.since >= verdict.limit;
  steps.tell_wait = waits && !wait_told_;
  wait_told_ = waits;
  return steps;
}

}  // namespace lockstep::agent
