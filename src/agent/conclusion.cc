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
  if (facts_.leftovers == 0) return exchange_reports();
  if (!facts_.succeeded) return kill_leftovers();
  const Actions ask{{Act::terminate_leftovers}};
  if (patience_ != Patience::usual) return ask + kill_leftovers();
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

// The first stage is then one that does not wait.
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

// Also where all of them have ended by themselves: what they started meanwhile is found here.
Actions Conclusion::kill_leftovers() {
  stage_ = Stage::killing_leftovers;
  return {{Act::kill_leftovers, patience_ == Patience::none ? Duration{0} : kKillLimit}};
}

// Without patience the own report is sent all the same: the others may still wait for it.
Actions Conclusion::exchange_reports() {
  if (!facts_.exchanges_reports) return leave();
  stage_ = Stage::exchanging_reports;
  const Actions send{{Act::exchange_reports, kReportTime}, {Act::arm, 2 * kReportTime}};
  return patience_ == Patience::usual ? send : send + leave();
}

// The outcome is told before this node takes leave: a host may have to wait for others that are
// frozen.
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
         Actions{{Act::arm, std::max(kLeastConsoleTime, limits_.shutdown)}, {Act::watch_console}};
}

Actions Conclusion::finish() {
  stage_ = Stage::done;
  return {{Act::stop}};
}

void Conclusion::renew_patience() {
  if (patience_ == Patience::not_in_this_stage) patience_ = Patience::usual;
}

}  // namespace lockstep::agent
