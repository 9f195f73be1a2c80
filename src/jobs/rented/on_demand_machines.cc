#include "jobs/rented/on_demand_machines.h"

#include "proc/signal_watch.h"
#include "rent/market.h"
#include "rent/rented_cluster.h"

#include <fmt/core.h>

#include <chrono>
#include <utility>

namespace lockstep::jobs::rented {
namespace {

// One try a second: `keep` and `down` hold the cluster's lock for a while.
constexpr int kLockTries = 60;

}  // namespace

int OnDemandMachines::take_signal() {
  const int signal = world_.signals().take();
  return signal != 0 ? signal : proc::SignalWatch::take_stop();
}

// The lock is free while the job runs.
Status OnDemandMachines::lock() {
  Status locked = world_.locks().take(rental_.cluster);
  for (int tries = 0; !locked && tries < kLockTries; ++tries) {
    LOCKSTEP_TRY(world_.web().pause(std::chrono::seconds(1)));
    locked = world_.locks().take(rental_.cluster);
  }
  LOCKSTEP_TRY(locked);
  auto known = world_.journal().of_cluster(rental_.cluster);
  if (known && known->id == rental_.id)
    rental_ = std::move(*known);
  else if (known || known.error().code == Errc::not_found)
    rental_.closed_ms = world_.now_ms();
  return {};
}

Status OnDemandMachines::rent(bool on_demand, std::optional<std::chrono::milliseconds> wait) {
  if (on_demand) rental_.wish.spot = cloud::SpotWish::no;
  if (rental_.settled()) LOCKSTEP_TRY(rent::new_keys(world_, rental_));
  LOCKSTEP_TRY_ASSIGN(auto market, rent::ask_market(world_, rental_.wish, true));
  cloud::RentRules rules;
  rules.wait = wait;
  return rent::rent_gang(world_, rental_, std::move(market), rules, words_.event,
                         [&](const rent::ContactStep& step) { words_.step(step.text); });
}

Status OnDemandMachines::drop_lost() {
  const cloud::Offer lost = rental_.attempts.back().offer;
  LOCKSTEP_TRY(rent::drop_machines(world_, rental_, kLostCode, words_.event));
  if (!lost.spot) return {};  // the loss says nothing about capacity there
  return world_.journal().learn({.kind = cloud::Block::Kind::capacity,
                                 .provider = lost.provider,
                                 .region = lost.region,
                                 .zone = lost.zone,
                                 .type = lost.type,
                                 .spot = lost.spot,
                                 .until_ms = world_.now_ms() + cloud::kCapacityBlockMs,
                                 .why = "took a machine away"});
}

Status OnDemandMachines::give_back() {
  Status back = words_.give_back(rental_);
  // The lock is taken again for the next try.
  if (!back && back.error().code == Errc::canceled) unlock();
  return back;
}

std::optional<cloud::Rental> OnDemandMachines::look() {
  cloud::Rental copy = rental_;
  return rent::look_only(world_, copy) ? std::optional(std::move(copy)) : std::nullopt;
}

Result<std::vector<hosts::HostPlace>> OnDemandMachines::places() {
  const auto known = world_.journal().of_cluster(rental_.cluster);
  if (known ? known->id != rental_.id : known.error().code == Errc::not_found)
    return fail(Errc::unavailable, fmt::format("'{}' was terminated", rental_.cluster));
  return rent::present_places(rental_.cluster);
}

Result<std::vector<rent::LeaseAnswer>> OnDemandMachines::leases() {
  LOCKSTEP_TRY_ASSIGN(const auto at, places());
  return rent::ask_leases(at);
}

Status OnDemandMachines::hold(std::int64_t seconds) {
  LOCKSTEP_TRY_ASSIGN(const auto at, places());
  LOCKSTEP_TRY_ASSIGN(const auto held, rent::hold_leases(at, seconds));
  for (const rent::LeaseAnswer& answer : held)
    if (!answer.error.empty()) return fail(Errc::unavailable, answer.error);
  return {};
}

bool OnDemandMachines::some_gone() const {
  const auto other = rent::OnDemand::open();
  if (!other) return false;
  cloud::Rental copy = rental_;
  return rent::look_only(**other, copy) && !cloud::is_whole(copy);
}

}  // namespace lockstep::jobs::rented
