// Tests of all that asks machines and hosts of guards over a link: first contact, leases, guards.
#include "base/clock_ms.h"
#include "base/error_testing.h"
#include "codec/json.h"
#include "hosts/registry.h"
#include "machine/health.h"
#include "rent/fake_host_testing.h"
#include "rent/fake_sshd_testing.h"
#include "rent/fake_world_testing.h"
#include "rent/first_contact.h"
#include "rent/gang.h"
#include "rent/guard_talk.h"
#include "rent/rental_files.h"
#include "rent/rented_host.h"
#include "ssh/pins.h"

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

namespace lockstep::rent {
namespace {

using testing::FailingSsh;
using testing::FakeHost;
using testing::Greeter;
using testing::says;

constexpr std::size_t kMeasured = 2UL << 20;
constexpr const char* kNewKey = "ssh-ed25519 AAAANEW";

std::string state_text(const machine::LeaseState& state) {
  return codec::print_json(nlohmann::ordered_json{{"state", to_json(state)}});
}

std::string key_text() {
  return codec::print_json(nlohmann::ordered_json{{"state", to_json(machine::LeaseState{})},
                                                  {"host_key", kNewKey},
                                                  {"fresh", true},
                                                  {"seen", true}});
}

// What a healthy machine without GPUs prints for host-health.
FakeHost::Answer health(const FakeHost::Command& command, const machine::HealthFacts& facts) {
  if (!command.ended && command.input.ends_with('\n'))
    return {.out = fmt::format("{{\"clock_ns\": {}}}\n", unix_ms() * 1'000'000)};
  if (!command.ended) return {};
  return {.out = std::string(kMeasured, 'x') + codec::print_json(nlohmann::ordered_json{
                                                   {"facts", to_json(facts)}, {"down_ms", 5}}),
          .exits = true};
}

class MachineAnswers : public testing::FakeWorld {
 protected:
  MachineAnswers() : ssh_(folder, "ssh must not be started\n") {}

  // Returns a rental with a machine that greets as sshd and is behind a FakeHost.
  cloud::Rental machine_with(FakeHost::Script script) {
    cloud::Rental rental = rented("a");
    cloud::Machine& machine = rental.attempts[0].machines[0].machine;
    machine.address = "127.0.0.1";
    machine.port = sshd_.port();
    EXPECT_TRUE(new_keys(*world, rental));
    EXPECT_TRUE(world->journal().keep(rental));
    pins_ = hosts::Registry::open(folder + "/lockstep")->pins_file("a");
    host_ = std::make_unique<FakeHost>(place().target, pins_, std::move(script));
    return rental;
  }
  hosts::HostPlace place() const {
    hosts::HostPlace place{
        .name = "a-0",
        .target = {.host = "127.0.0.1", .port = sshd_.port(), .key_path = user_key_file("a")},
        .pins = pins_};
    place.target.host_keys = ssh::HostKeys::pinned;
    return place;
  }

  Greeter sshd_{"SSH-2.0-OpenSSH_9.2\r\n"};
  FailingSsh ssh_;
  std::string pins_;
  std::unique_ptr<FakeHost> host_;
};

TEST_F(MachineAnswers, AHealthyMachineIsGoodAndItsNewKeyIsPinnedAndKept) {
  machine::HealthFacts facts;
  facts.disk_free = std::int64_t{100} << 30;
  cloud::Rental rental = machine_with([&](const FakeHost::Command& command) -> FakeHost::Answer {
    if (command.argv[0] == "host-health") return health(command, facts);
    if (!command.ended) return {};
    const bool key = command.argv[1] == "make-key" || command.argv[1] == "show-key";
    return {.out = key ? key_text() : state_text({}), .exits = true};
  });
  std::string steps;
  const cloud::Verdict verdict =
      meet_machines(*world, rental, [&](const ContactStep& step) { steps += step.text + "\n"; });
  ASSERT_EQ(verdict.kind, cloud::Verdict::Kind::good) << verdict.error.message << "\n" << steps;
  EXPECT_EQ(rental.attempts[0].machines[0].host_key, kNewKey);
  EXPECT_EQ(kept("a").attempts[0].machines[0].host_key, kNewKey);
  EXPECT_EQ(ssh::read_pins(pins_, "127.0.0.1", sshd_.port())->keys,
            std::vector<std::string>{kNewKey});
}

TEST_F(MachineAnswers, ASickMachineIsBad) {
  machine::HealthFacts facts;
  facts.disk_error = "read-only file system";
  cloud::Rental rental = machine_with([&](const FakeHost::Command& command) -> FakeHost::Answer {
    if (command.argv[0] == "host-health") return health(command, facts);
    return says(key_text())(command);
  });
  const cloud::Verdict verdict = meet_machines(*world, rental, {});
  EXPECT_EQ(verdict.kind, cloud::Verdict::Kind::bad);
  EXPECT_NE(verdict.error.message.find("read-only file system"), std::string::npos)
      << verdict.error.message;
  EXPECT_TRUE(kept("a").attempts[0].machines[0].host_key.empty());
}

TEST_F(MachineAnswers, AMachineThatCannotEndItselfIsBad) {
  machine::HealthFacts facts;
  facts.disk_free = std::int64_t{100} << 30;
  cloud::Rental rental = machine_with([&](const FakeHost::Command& command) -> FakeHost::Answer {
    if (command.argv[0] == "host-health") return health(command, facts);
    if (!command.ended) return {};
    if (command.argv[1] == "begin")
      return {.out = R"({"error": "sudo asks for a password"})", .exits = true};
    return {.out = key_text(), .exits = true};
  });
  const cloud::Verdict verdict = meet_machines(*world, rental, {});
  EXPECT_EQ(verdict.kind, cloud::Verdict::Kind::bad);
  EXPECT_EQ(verdict.error.message, "a-0: sudo asks for a password");
}

TEST_F(MachineAnswers, LeasesAreReadMovedAndHeld) {
  machine::LeaseState state;
  state.phase = machine::LeaseState::Phase::running;
  state.left_ms = 60'000;
  (void)machine_with(says(state_text(state)));
  for (const auto& answers : {ask_leases({place()}), keep_leases({place()}, 1'800'000'000'000),
                              hold_leases({place()}, 60)}) {
    ASSERT_TRUE(answers);
    EXPECT_EQ(answers->at(0).error, "");
    EXPECT_EQ(answers->at(0).state.left_ms, 60'000);
  }
  EXPECT_EQ(host_->commands(), (std::vector<std::string>{"host-lease status", "host-lease keep",
                                                         "host-lease hold 60"}));
}

TEST_F(MachineAnswers, AMachineWithoutALeaseAnswersWithTheReason) {
  (void)machine_with(says("not JSON"));
  EXPECT_EQ(ask_leases({place()})->at(0).error, "a-0: unreadable answer about the lease");
  (void)machine_with(says("", 1));
  EXPECT_NE(ask_leases({place()})->at(0).error, "");
  host_.reset();
  EXPECT_NE(ask_leases({place()})->at(0).error, "") << "ssh fails to log in";
  EXPECT_TRUE(ask_leases({})->empty());
}

// A rental whose machines the host `box` guards.
class GuardAnswers : public MachineAnswers {
 protected:
  GuardAnswers() {
    rental = rented("a");
    rental.terms.guard = "box";
    rental.attempts[0].offer.ending = cloud::Ending::with_guard;
  }
  // Makes the guard's host, which answers all requests with `answer`.
  void guard_says(const Result<GuardAnswer>& answer) {
    const std::string text = guard_answer_text(answer);
    host_.reset();
    host_ = std::make_unique<FakeHost>(GuardHosts::place_of("box")->target, "", says(text));
  }
  static GuardAnswer heard() { return {.now_ms = unix_ms()}; }
  GuardHosts::Word word() { return world->guards().word_of(rental); }

  cloud::Rental rental;
};

using Word = GuardHosts::Word;

TEST_F(GuardAnswers, AGuardIsToldOfEachChangeAndItsAnswerIsRemembered) {
  EXPECT_EQ(word(), Word::nothing);
  guard_says(heard());
  EXPECT_TRUE(world->guards().tell(rental, GuardNewsKind::launching));
  EXPECT_EQ(word(), Word::guards);
  EXPECT_EQ(world->guards().trouble_of(rental), "");
  EXPECT_EQ(host_->commands().at(0), "host-guard tell " + world->owner());
  GuardAnswer started = heard();
  started.started = true;
  guard_says(started);
  EXPECT_TRUE(world->guards().insist(rental));
  EXPECT_EQ(word(), Word::started);
}

TEST_F(GuardAnswers, ARentalThatNoOtherHostGuardsIsNotTold) {
  rental.terms.guard = "here";
  EXPECT_TRUE(world->guards().tell(rental, GuardNewsKind::launching));
  EXPECT_EQ(word(), Word::nothing);
}

TEST_F(GuardAnswers, WhatTheGuardHasTerminatedMustNotBeUsed) {
  GuardAnswer over = heard();
  over.over = true;
  guard_says(over);
  const Status told = world->guards().insist(rental);
  ASSERT_FALSE(told);
  EXPECT_EQ(told.error().message, "the guard on box has ended 'a'");
  EXPECT_EQ(word(), Word::over);
}

TEST_F(GuardAnswers, ARefusalKeepsMachinesFromBeingUsedButNotFromBeingGivenBack) {
  guard_says(fail(Errc::denied, "no key of Lambda is there", "put one there"));
  EXPECT_EQ(code_of(world->guards().tell(rental, GuardNewsKind::launching)), Errc::denied);
  EXPECT_EQ(word(), Word::refuses);
  EXPECT_EQ(world->guards().trouble_of(rental),
            "the guard on box: no key of Lambda is there; put one there");
  rental.attempts[0].state = cloud::Attempt::State::gone;
  EXPECT_TRUE(world->guards().tell(rental, GuardNewsKind::noting)) << "nothing is left to guard";
}

TEST_F(GuardAnswers, AHostWithAWrongClockDoesNotGuard) {
  GuardAnswer late = heard();
  late.now_ms -= 60'000;
  guard_says(late);
  const Status told = world->guards().tell(rental, GuardNewsKind::launching);
  ASSERT_FALSE(told);
  EXPECT_NE(told.error().message.find("behind this machine's"), std::string::npos)
      << told.error().message;
}

TEST_F(GuardAnswers, ASilentHostIsAskedAgainOnlyWhereItMatters) {
  EXPECT_FALSE(world->guards().tell(rental, GuardNewsKind::working));
  EXPECT_EQ(word(), Word::silent);
  guard_says(heard());
  EXPECT_FALSE(world->guards().tell(rental, GuardNewsKind::working)) << "silent a moment ago";
  EXPECT_TRUE(host_->commands().empty());
  EXPECT_TRUE(world->guards().tell(rental, GuardNewsKind::launching)) << "no launch unguarded";
}

TEST_F(GuardAnswers, BeforeRentingTheHostAgreesAndNamesItsAddress) {
  GuardAnswer agrees = heard();
  guard_says(agrees);
  EXPECT_TRUE(world->guards().agree("box", {"one"}, false));
  EXPECT_EQ(code_of(world->guards().agree("box", {"one"}, true)), Errc::corrupt);
  agrees.cidr = "192.0.2.9/32";
  guard_says(agrees);
  EXPECT_EQ(world->guards().agree("box", {"one"}, true)->cidr, "192.0.2.9/32");
  EXPECT_EQ(host_->commands().at(0), "host-guard ask " + world->owner() + " one address");
}

TEST_F(GuardAnswers, AGuardIsOneMachineThatIsNeitherRentedNorThisOne) {
  EXPECT_FALSE(GuardHosts::place_of("local"));
  const auto registry = hosts::Registry::open(folder + "/lockstep");
  ASSERT_TRUE(registry->put({.name = "gpus", .source = "cloud", .nodes = {}}));
  EXPECT_NE(GuardHosts::place_of("gpus").error().message.find("a rented cluster cannot be a guard"),
            std::string::npos);
  ASSERT_TRUE(registry->add(
      {.name = "two", .nodes = {{.target = {.host = "x"}}, {.target = {.host = "y"}}}}));
  EXPECT_NE(GuardHosts::place_of("two").error().message.find("it has 2 nodes"), std::string::npos);
}

}  // namespace
}  // namespace lockstep::rent
