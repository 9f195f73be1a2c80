// A world for tests of renting: a provider with machines, money and a clock, in which answers are
// lost, zones are empty, machines fail, and the client is killed at any step.
#pragma once

#include "cloud/journal.h"
#include "cloud/provider.h"
#include "cloud/renting.h"

#include <algorithm>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

namespace lockstep::cloud::testing {

struct Killed {};  // thrown where the client's process ends

struct SimMachine {
  std::string id;
  std::string intent;
  std::string owner;
  std::string token;
  std::string zone;
  int node = 0;
  Micros per_hour = 0;
  std::int64_t launched_ms = 0;
  std::int64_t listed_ms = 0;   // not in lists before
  std::int64_t running_ms = 0;  // pending before
  std::int64_t ends_ms = 0;     // its own lease, or when it fails; 0: never
  std::int64_t ended_ms = 0;
  bool unhealthy = false;
};

struct SimRules {
  bool tokens = true;  // a repeated token makes nothing new, within its zone
  bool gang_in_one = true;
  double lose_answer = 0.1;  // of calls: done, and no answer
  double lose_question = 0.05;
  double empty_zone = 0.3;
  double die_booting = 0.1;
  double kill = 0.02;             // of steps
  bool sync = true;               // false: the newest record is lost with the process
  bool token_per_attempt = true;  // false: the bug that the check must find
};

class SimWorld {
 public:
  SimWorld(unsigned seed, const SimRules& with) : rules(with), random_(seed) {}

  bool chance(double part) { return std::uniform_real_distribution<>(0, 1)(random_) < part; }
  std::int64_t between(std::int64_t from, std::int64_t to) {
    return std::uniform_int_distribution<std::int64_t>(from, to)(random_);
  }
  void step() {
    if (kills && chance(rules.kill)) throw Killed{};
  }
  void pass_time(std::int64_t ms) {
    now += ms;
    for (SimMachine& machine : machines)
      if (machine.ended_ms == 0 && machine.ends_ms != 0 && machine.ends_ms <= now)
        machine.ended_ms = machine.ends_ms;
  }
  std::size_t alive(const std::string& intent = {}) const {
    return static_cast<std::size_t>(
        std::count_if(machines.begin(), machines.end(), [&](const SimMachine& machine) {
          return machine.ended_ms == 0 && (intent.empty() || machine.intent == intent);
        }));
  }
  Micros billed() const {
    Micros sum = 0;
    for (const SimMachine& machine : machines)
      sum += cost_of(machine.per_hour,
                     (machine.ended_ms == 0 ? now : machine.ended_ms) - machine.launched_ms);
    return sum;
  }

  SimRules rules;
  bool kills = true;
  std::int64_t now = 1'800'000'000'000;
  std::vector<SimMachine> machines;
  std::size_t most_alive = 0;  // of one intent, ever
  std::map<std::string, Records::Record> disk;

 private:
  std::mt19937 random_;
};

// On the world's disk. Without sync the last record of a killed process is as it was before.
class SimRecords : public Records {
 public:
  explicit SimRecords(SimWorld& world) : world_(world) {}
  ~SimRecords() override = default;

  Status put(const Record& record) override {
    world_.step();
    Record& place = world_.disk[record.kind + " " + record.id];
    const Record before = place;
    place = record;
    try {
      world_.step();
      // Where nothing is synced, the machine is asked before the record is on disk.
      if (!world_.rules.sync && world_.kills && world_.chance(0.3)) unsynced_ = true;
    } catch (const Killed&) {
      if (!world_.rules.sync && unsynced_) world_.disk[record.kind + " " + record.id] = before;
      throw;
    }
    before_ = before;
    key_ = record.kind + " " + record.id;
    return {};
  }
  // What a crash takes along that was not synced.
  void crash() {
    if (world_.rules.sync || key_.empty()) return;
    if (before_.id.empty())
      world_.disk.erase(key_);
    else
      world_.disk[key_] = before_;
  }
  Status drop(const std::string& kind, const std::string& id) override {
    world_.disk.erase(kind + " " + id);
    return {};
  }
  Result<std::vector<Record>> open_ones(const std::string& kind) override {
    std::vector<Record> found;
    for (const auto& [key, record] : world_.disk)
      if (record.kind == kind && record.open) found.push_back(record);
    return found;
  }
  Result<std::vector<Record>> since(const std::string& kind, std::int64_t ms) override {
    std::vector<Record> found;
    for (const auto& [key, record] : world_.disk)
      if (record.kind == kind && record.at_ms >= ms) found.push_back(record);
    return found;
  }

 private:
  SimWorld& world_;
  Record before_;
  std::string key_;
  bool unsynced_ = false;
};

class SimWeb : public Web {
 public:
  explicit SimWeb(SimWorld& world) : world_(world) {}
  Reply ask(const Question& /*question*/) override {
    return {.answer = fail(Errc::internal, "nobody asks this one"), .sent = false};
  }
  void at_once(const std::vector<std::function<void(Web&)>>& jobs) override {
    for (const auto& job : jobs)
      job(*this);
  }
  std::int64_t now_ms() const override { return world_.now; }
  Status pause(std::chrono::milliseconds time) override {
    world_.step();
    world_.pass_time(time.count());
    return {};
  }

 private:
  SimWorld& world_;
};

class SimProvider : public Provider {
 public:
  SimProvider(SimWorld& world, std::string name) : world_(world), name_(std::move(name)) {
    traits_ = {.name = name_,
               .title = name_,
               .gang_in_one_call = world.rules.gang_in_one,
               .has_spot = true,
               .resends_token = world.rules.tokens,
               .minimum_billing_s = 0};
  }

  const Traits& traits() const override { return traits_; }
  Status keys() override { return {}; }
  Result<std::string> account(Web& /*web*/) override { return "sim"; }
  Catalog offers(Web& /*web*/, const OfferQuery& /*query*/) override { return {}; }
  Status allow(Web& /*web*/, const std::string& /*region*/, const std::string& /*cidr*/) override {
    return {};
  }
  std::vector<Finding> check(Web& /*web*/) override { return {}; }

  tl::expected<LaunchCall, LaunchOutcome> prepare(Web& /*web*/, const LaunchSpec& spec) override {
    world_.step();
    const int number = world_.rules.token_per_attempt ? spec.attempt : 1;
    return LaunchCall{.region = spec.offer.region,
                      .zone = spec.offer.zone,
                      .token = spec.intent + "-" + std::to_string(number),
                      .target = "launch",
                      .body = "b"};
  }

  LaunchOutcome launch(Web& /*web*/, const LaunchSpec& spec, const LaunchCall& call) override {
    world_.step();
    world_.pass_time(world_.between(50, 3'000));
    if (world_.chance(world_.rules.lose_question)) return {.message = "no answer"};
    const LaunchOutcome outcome = answer(spec, call);
    world_.step();
    if (world_.chance(world_.rules.lose_answer)) {
      world_.pass_time(10'000);
      return {.message = "no answer"};
    }
    return outcome;
  }

  LaunchOutcome resolve(Web& web, const LaunchSpec& spec, const LaunchCall& call,
                        std::int64_t asked_ms) override {
    if (world_.rules.tokens) return launch(web, spec, call);
    world_.step();
    LaunchOutcome found{.kind = LaunchOutcome::Kind::answered};
    for (const SimMachine& machine : world_.machines)
      if (machine.token == call.token && machine.listed_ms <= world_.now)
        found.ids.push_back(machine.id), found.launched_ms = machine.launched_ms;
    if (!found.ids.empty()) return found;
    if (world_.now - asked_ms < 70'000) return {.message = "not listed yet"};
    return {.kind = LaunchOutcome::Kind::refused, .refusal = Refusal::next_zone};
  }

  Result<Listing> list(Web& /*web*/, const ListQuery& query) override {
    world_.step();
    world_.pass_time(50);
    if (world_.chance(0.05)) return fail(Errc::unavailable, "503");
    Listing listing;
    for (const SimMachine& machine : world_.machines) {
      if (!query.intent.empty() && machine.intent != query.intent) continue;
      if (machine.listed_ms > world_.now) continue;
      if (machine.ended_ms != 0 && world_.now - machine.ended_ms > 3'600'000) continue;
      listing.machines.push_back(seen(machine));
    }
    return listing;
  }

  Status end(Web& /*web*/, const std::vector<Machine>& ended) override {
    world_.step();
    if (world_.chance(0.05)) return fail(Errc::unavailable, "503");
    for (const Machine& machine : ended)
      for (SimMachine& one : world_.machines)
        if (one.id == machine.id && one.ended_ms == 0) one.ended_ms = world_.now;
    world_.step();
    world_.pass_time(50);
    return {};
  }

 private:
  LaunchOutcome answer(const LaunchSpec& spec, const LaunchCall& call) {
    if (world_.rules.tokens)
      if (LaunchOutcome before = same_token(call); !before.ids.empty()) return before;
    if (world_.chance(world_.rules.empty_zone))
      return {.kind = LaunchOutcome::Kind::refused,
              .refusal = Refusal::next_zone,
              .code = "InsufficientInstanceCapacity",
              .message = "no room"};
    LaunchOutcome made{.kind = LaunchOutcome::Kind::answered, .launched_ms = world_.now};
    for (int i = 0; i < spec.count; ++i) {
      SimMachine machine{.id = "i-" + std::to_string(world_.machines.size()),
                         .intent = spec.intent,
                         .owner = spec.owner,
                         .token = call.token,
                         .zone = call.zone,
                         .node = spec.node + i,
                         .per_hour = spec.offer.per_machine_hour(spec.disk_gb),
                         .launched_ms = world_.now,
                         .listed_ms = world_.now + world_.between(0, 20'000),
                         .running_ms = world_.now + world_.between(1'000, 90'000),
                         .ends_ms = spec.ends_ms};
      if (world_.chance(world_.rules.die_booting)) machine.ends_ms = world_.now + 10'000;
      machine.unhealthy = world_.chance(world_.rules.die_booting);
      made.ids.push_back(machine.id);
      world_.machines.push_back(std::move(machine));
    }
    world_.most_alive = std::max(world_.most_alive, world_.alive(spec.intent));
    return made;
  }

  // Tokens are zonal: in another zone the same one makes another machine.
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
               .intent = machine.intent,
               .owner = machine.owner};
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
  Traits traits_;
};

}  // namespace lockstep::cloud::testing
