// Providers of several kinds in the world of rent_world_testing.h.
#pragma once

#include "cloud/rent_world_testing.h"

namespace lockstep::cloud::testing {

// The way in which a provider's launches are safe against lost answers.
enum class SimKind {
  token,       // a repeated token launches nothing new in a zone; a gang is one call
  token_each,  // like `token`, but one machine per call
  by_name,     // no tokens: lists are searched for the name; one machine per call
};

class SimProvider : public Provider {
 public:
  SimProvider(SimWorld& world, std::string name, SimKind kind)
      : world_(world), name_(std::move(name)), kind_(kind) {
    traits_ = {.name = name_,
               .title = name_,
               .gang_in_one_call = kind == SimKind::token,
               .has_spot = true,
               .resends_token = kind != SimKind::by_name,
               .ending = kind == SimKind::by_name ? Ending::with_guard : Ending::by_itself,
               .minimum_billing_s = kind == SimKind::by_name ? 1 : 60};
  }

  const Traits& traits() const override { return traits_; }
  Status keys() override { return {}; }
  Result<std::string> account(Web& /*web*/) override { return "sim"; }
  Catalog offers(Web& /*web*/, const OfferQuery& /*query*/) override { return {}; }
  Status allow(Web& /*web*/, const std::string& /*region*/, const std::string& /*cidr*/) override {
    return {};
  }
  std::vector<Finding> check(Web& /*web*/) override { return {}; }

  tl::expected<LaunchCall, LaunchOutcome> prepare(Web& web, const LaunchSpec& spec) override {
    if (!reached(web) || (!world_.calm && world_.chance(world_.rules.silent_prepare)))
      return tl::make_unexpected(LaunchOutcome{.message = "503"});
    // A name contains the time, so every launch has a new name, even after a restore of an old
    // journal.
    const std::string when = kind_ == SimKind::by_name ? "-" + std::to_string(world_.now) : "";
    return LaunchCall{.region = spec.offer.region,
                      .zone = spec.offer.zone,
                      .token = spec.intent + "-" + std::to_string(spec.attempt) + when,
                      .target = "launch",
                      .body = "b"};
  }

  LaunchOutcome launch(Web& web, const LaunchSpec& spec, const LaunchCall& call) override {
    if (!reached(web)) return {.message = "503"};
    world_.pass_time(world_.between(50, 3'000));
    if (world_.chance(world_.rules.lose_question)) return {.message = "no answer"};
    LaunchOutcome outcome = answer(spec, call);
    world_.step();
    world_.meanwhile();
    if (!stopped(web) && !world_.chance(world_.rules.lose_answer)) return outcome;
    world_.pass_time(10'000);
    return {.message = "half an answer"};
  }

  LaunchOutcome resolve(Web& web, const LaunchSpec& spec, const LaunchCall& call,
                        std::int64_t asked_ms) override {
    if (kind_ != SimKind::by_name) {
      LaunchCall again = call;
      if (!world_.rules.own_zone) again.zone += "2";
      return launch(web, spec, again);
    }
    if (!reached(web)) return {.message = "503"};
    LaunchOutcome found{.kind = LaunchOutcome::Kind::answered};
    for (const SimMachine& machine : world_.machines)
      if (machine.token == call.token && machine.listed_ms <= world_.now)
        found.ids.push_back(machine.id), found.launched_ms = machine.launched_ms;
    if (!found.ids.empty()) return found;
    if (world_.now - asked_ms < 70'000) return {.message = "not listed yet"};
    return {.kind = LaunchOutcome::Kind::refused, .refusal = Refusal::next_zone};
  }

  Result<Listing> list(Web& web, const ListQuery& query) override {
    world_.pass_time(50);
    if (!reached(web) || world_.chance(world_.rules.lose_list))
      return fail(stopped(web) ? Errc::canceled : Errc::unavailable, "503");
    Listing listing;
    // A list may lack a region. Machines there are unknown, not gone.
    if (world_.chance(world_.rules.lose_list)) {
      listing.unheard.push_back({.provider = name_, .region = "r1", .why = "no answer"});
      return listing;
    }
    for (const SimMachine& machine : world_.machines) {
      if (machine.provider != name_ || machine.listed_ms > world_.now) continue;
      if (!query.intent.empty() && machine.intent != query.intent) continue;
      if (machine.ended_ms != 0 && world_.now - machine.ended_ms > 3'600'000) continue;
      listing.machines.push_back(seen(machine));
    }
    world_.meanwhile();
    return listing;
  }

  Status end(Web& web, const std::vector<Machine>& ended) override {
    const bool heard = reached(web) && !world_.chance(world_.rules.lose_end);
    // A machine that is too new to be found counts as missing, without an error.
    for (const Machine& machine : ended)
      for (SimMachine& one : world_.machines)
        if (heard && one.id == machine.id && one.ended_ms == 0 && one.listed_ms <= world_.now &&
            world_.rules.end_heard)
          one.ended_ms = world_.now;
    world_.step();
    world_.pass_time(50);
    if (!heard || world_.chance(world_.rules.lose_end)) return fail(Errc::unavailable, "503");
    return {};
  }

 private:
  static bool stopped(const Web& web) { return static_cast<const SimWeb&>(web).stopped(); }
  bool reached(const Web& web) {
    world_.step();
    return world_.answers(name_) && !stopped(web);
  }

  LaunchOutcome answer(const LaunchSpec& spec, const LaunchCall& call) {
    if (kind_ != SimKind::by_name)
      if (LaunchOutcome before = same_token(call); !before.ids.empty()) return before;
    if (world_.chance(world_.rules.empty_zone))
      return {.kind = LaunchOutcome::Kind::refused,
              .refusal = Refusal::next_zone,
              .code = "InsufficientInstanceCapacity",
              .message = "no room"};
    LaunchOutcome made{.kind = LaunchOutcome::Kind::answered, .launched_ms = world_.now};
    for (int i = 0; i < spec.count; ++i) {
      world_.machines.push_back(machine_of(spec, call, spec.node + i));
      made.ids.push_back(world_.machines.back().id);
    }
    world_.most_alive = std::max(world_.most_alive, world_.alive());
    return made;
  }

  SimMachine machine_of(const LaunchSpec& spec, const LaunchCall& call, int node) {
    SimMachine machine{.id = "i-" + std::to_string(world_.machines.size()),
                       .provider = name_,
                       .intent = spec.intent,
                       .owner = spec.owner,
                       .token = call.token,
                       .zone = call.zone,
                       .node = node,
                       .per_hour = spec.offer.per_machine_hour(spec.disk_gb),
                       .launched_ms = world_.now,
                       .listed_ms = world_.now + world_.between(0, 20'000),
                       .running_ms = world_.now + world_.between(1'000, 90'000),
                       .lease_ms = spec.ends_ms,
                       .minimum_s = traits_.minimum_billing_s};
    if (traits_.ending == Ending::by_itself) machine.ends_ms = spec.ends_ms;
    if (world_.chance(world_.rules.die_booting)) {
      machine.ends_ms = world_.now + 10'000;
    } else if (world_.chance(world_.rules.taken)) {
      machine.ends_ms = machine.running_ms + world_.between(0, 3'600'000);
      machine.taken = true;
    }
    machine.unhealthy = world_.chance(world_.rules.die_booting);
    return machine;
  }

  // Tokens are zonal: the same token in another zone launches another machine.
  LaunchOutcome same_token(const LaunchCall& call) const {
    LaunchOutcome before{.kind = LaunchOutcome::Kind::answered};
    for (const SimMachine& machine : world_.machines)
      if (machine.token == call.token && machine.zone == call.zone)
        before.ids.push_back(machine.id), before.launched_ms = machine.launched_ms;
    return before;
  }

  Machine seen(const SimMachine& machine) const {
    Machine as{.id = machine.id,
               .region = "r1",
               .zone = machine.zone,
               .launched_ms = machine.launched_ms,
               .ended_ms = machine.ended_ms,
               .taken = machine.taken && machine.ended_ms != 0,
               .intent = machine.intent,
               .owner = machine.owner,
               .token = world_.rules.tokens_told ? machine.token : std::string(),
               .node = kind_ == SimKind::by_name ? machine.node : -1};
    as.no_room = machine.ended_ms != 0 && machine.ended_ms < machine.running_ms;
    if (machine.ended_ms != 0)
      as.state = Machine::State::gone;
    else if (machine.running_ms > world_.now)
      as.state = Machine::State::pending;
    else
      as.state = machine.unhealthy ? Machine::State::unhealthy : Machine::State::running;
    if (as.state == Machine::State::running) as.address = "192.0.2.1";
    return as;
  }

  SimWorld& world_;
  std::string name_;
  SimKind kind_;
  Traits traits_;
};

}  // namespace lockstep::cloud::testing
