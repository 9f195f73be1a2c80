// Implementation of the Conclusion table: a function per stage (on_...) and a function per
// transition.
#include "agent/conclusion.h"

#include <algorithm>

namespace lockstep::agent {
namespace {

using Actions = Conclusion::Actions;

Actions operator+(Actions first, const Actions& second) {
  first.insert(first.end(), second.begin(), second.end());
  return first;
}

}  // namespace

Actions Conclusion::begin(const Facts& facts) {
  facts_ = facts;
  // Leftovers come first: a process may outlive its worker and still write output.
  if (facts_.leftovers == 0) return exchange_reports();
  // After a failure, leftovers get SIGKILL at once.
  if (!facts_.succeeded) return kill_leftovers();
  const Actions ask{{Act::terminate_leftovers}};
  if (patience_ != Patience::usual) return ask + kill_leftovers();
  // After a success, a leftover may be a logger that still uploads its last lines: SIGTERM and a
  // short wait.
  stage_ = Stage::leftover_grace;
  return ask +
         Actions{{Act::arm, std::min(kLeftoverGrace, limits_.shutdown)}, {Act::watch_leftovers}};
}

Actions Conclusion::on(Event event) {
  if (event == Event::no_patience) patience_ = Patience::none;
  switch (stage_) {
    case Stage::not_begun:
      return on_not_begun(event);
    case Stage::leftover_grace:
      return on_leftover_grace(event);
    case Stage::killing_leftovers:
      return on_killing(event);
    case Stage::exchanging_reports:
      return on_exchange(event);
    case Stage::leaving:
    case Stage::staying:
      return on_leaving(event);
    case Stage::draining_console:
      return on_draining(event);
    case Stage::done:
      return {};
  }
  return {};
}

// A request to hurry before begin() applies to the first stage: begin() then skips that wait.
Actions Conclusion::on_not_begun(Event event) {
  if (event == Event::hurry && patience_ == Patience::usual)
    patience_ = Patience::not_in_this_stage;
  return {};
}

Actions Conclusion::on_leftover_grace(Event event) {
  switch (event) {
    case Event::leftovers_gone:
    case Event::time_over:
    case Event::hurry:
    case Event::no_patience:
      return kill_leftovers();
    default:
      return {};
  }
}

Actions Conclusion::on_killing(Event event) {
  switch (event) {
    case Event::leftovers_gone:
      renew_patience();
      return Actions{{Act::say_leftovers}} + exchange_reports();
    case Event::no_patience:
      return kill_leftovers();
    default:
      return {};  // nothing goes on beside processes that can still be ended
  }
}

Actions Conclusion::on_exchange(Event event) {
  switch (event) {
    case Event::reports_came:
    case Event::time_over:
    case Event::hurry:
    case Event::no_patience:
      return leave();
    default:
      return {};
  }
}

Actions Conclusion::on_leaving(Event event) {
  switch (event) {
    case Event::time_over: {
      // The first timeout only warns the user that leaving takes long. The second one ends the
      // stage.
      if (stage_ == Stage::staying || limits_.leave <= kQuietDeparture) return close();
      stage_ = Stage::staying;
      const Duration left = limits_.leave - kQuietDeparture;
      return {{Act::say_staying, left}, {Act::arm, left}};
    }
    case Event::departed:
    case Event::hurry:
    case Event::no_patience:
      return close();
    default:
      return {};
  }
}

Actions Conclusion::on_draining(Event event) {
  switch (event) {
    case Event::console_drained:
    case Event::time_over:
    case Event::hurry:
    case Event::no_patience:
      return finish();
    default:
      return {};
  }
}

// Sweep even if all leftovers ended by themselves: they may have started new processes meanwhile.
Actions Conclusion::kill_leftovers() {
  stage_ = Stage::killing_leftovers;
  return {{Act::kill_leftovers, patience_ == Patience::none ? Duration{0} : kKillLimit}};
}

// Send this node's own report even without patience: the other nodes may still wait for it.
Actions Conclusion::exchange_reports() {
  if (!facts_.exchanges_reports) return leave();
  stage_ = Stage::exchanging_reports;
  const Actions send{{Act::exchange_reports, kReportTime}, {Act::arm, 2 * kReportTime}};
  return patience_ == Patience::usual ? send : send + leave();
}

// Print the outcome before leaving the rendezvous: the host of a rendezvous may have to wait for
// frozen nodes before it can leave.
Actions Conclusion::leave() {
  renew_patience();
  const Actions tell{{Act::tell_outcome}};
  if (!facts_.in_rendezvous) return tell + close();
  stage_ = Stage::leaving;
  const Actions go =
      tell + Actions{{Act::leave}, {Act::arm, std::min(kQuietDeparture, limits_.leave)}};
  return patience_ == Patience::usual ? go : go + close();
}

Actions Conclusion::close() {
  const Actions release{{Act::close}};
  if (patience_ == Patience::none) return release + finish();
  stage_ = Stage::draining_console;
  return release +
         // Even with --shutdown-timeout 0 the console gets kLeastConsoleTime to write the report.
         Actions{{Act::arm, std::max(kLeastConsoleTime, limits_.shutdown)}, {Act::watch_console}};
}

Actions Conclusion::finish() {
  stage_ = Stage::done;
  return {{Act::stop}};
}

void Conclusion::renew_patience() {
  // Patience::none is final and survives every stage.
  if (patience_ == Patience::not_in_this_stage) patience_ = Patience::usual;
}

}  // namespace lockstep::agent
