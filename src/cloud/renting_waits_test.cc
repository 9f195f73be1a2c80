// Tests renting while it waits for machines to boot, or for capacity.
#include "cloud/renting_case_testing.h"

#include <string>
#include <vector>

namespace lockstep::cloud {
namespace {

using testing::place;
using testing::refusal;
using testing::RentingCase;

// As if a person terminated the machine in the console while a client waited for its sshd.
TEST_F(RentingCase, AMachineThatIsGoneWhenItIsJudgedIsLostAndNotBad) {
  int judged = 0;
  const Status done = renting().rent(
      rental, [this] { return catalog; },
      [&](Rental& at) -> Verdict {
        EXPECT_FALSE(is_lost(at));
        if (++judged > 1) return {};
        world.machines.front().ends_ms = world.now;
        world.pass_time(1);
        Rental seen = at;
        EXPECT_TRUE(renting().machines().look(seen, false));
        EXPECT_TRUE(is_lost(seen));
        return {Verdict::Kind::bad, fail(Errc::unavailable, "no sshd").value()};
      });
  ASSERT_TRUE(done) << done.error().message;
  EXPECT_EQ(judged, 2);
  EXPECT_NE(rental.attempts.front().code.find("the machine disappeared while booting"),
            std::string::npos);
  EXPECT_EQ(rental.attempts.back().offer.zone, "r1-b");
  ASSERT_EQ(journal.blocks(world.now)->size(), 1U);
  EXPECT_EQ(journal.blocks(world.now)->front().kind, Block::Kind::capacity);
  EXPECT_EQ(world.alive(), 1U);
}

TEST_F(RentingCase, APauseSaysWhoIsAskedWhen) {
  provider.on_launch = [](const LaunchSpec&) {
    return refusal(Refusal::next_zone, "InsufficientInstanceCapacity");
  };
  std::vector<std::string> said;
  const auto words = [&](std::chrono::minutes wait) {
    RentRules rules;
    rules.wait = wait;
    with_rules.emplace(RentParts{journal, web, ending, [this](auto) { return &provider; },
                                 [&](const RentEvent& event) {
                                   if (event.kind == RentEvent::Kind::pausing)
                                     said.push_back(event.text.substr(0, event.text.find(';')));
                                 }},
                       rules);
    EXPECT_FALSE(rent());
  };
  const std::string again = "prices and stock are checked again in ";
  words(std::chrono::minutes(12));
  ASSERT_EQ(said.size(), 6U);
  EXPECT_EQ(said[0], again + "15 s, refused offers in 10 min");
  EXPECT_EQ(said[4], again + "240 s, refused offers in 7 min");
  EXPECT_TRUE(said[5].starts_with("asked again in 2")) << said[5];
  EXPECT_EQ(provider.specs.size(), 4U);
  said.clear();
  words(std::chrono::minutes(5));
  EXPECT_EQ(said[0], again + "15 s, refused offers only after --wait is over");
}

TEST_F(RentingCase, SilenceAfterTheFirstPassIsWaitedFor) {
  provider.on_launch = [this](const LaunchSpec&) -> std::optional<LaunchOutcome> {
    if (passes > 2) return std::nullopt;
    return refusal(Refusal::next_zone, "InsufficientInstanceCapacity");
  };
  const auto offers = [this]() -> Catalog {
    if (++passes != 2) return catalog;
    return {.offers = {}, .silent = {{.provider = "sim", .why = "503"}}};
  };
  RentRules patient;
  patient.wait = std::nullopt;
  EXPECT_TRUE(renting(patient).rent(rental, offers, [](Rental&) { return Verdict{}; }));
}

// `lockstep down` only marks the rental if another process has the lock.
TEST_F(RentingCase, WhoWantsItNoMoreEndsItsRentingInSeconds) {
  provider.on_launch = [](const LaunchSpec&) {
    return refusal(Refusal::next_zone, "InsufficientInstanceCapacity");
  };
  RentRules rules;
  rules.wait = std::nullopt;
  std::int64_t dropped = 0;
  with_rules.emplace(RentParts{journal, web, ending, [this](auto) { return &provider; },
                               [&](const RentEvent& event) {
                                 if (event.kind != RentEvent::Kind::pausing || ++passes < 4) return;
                                 EXPECT_TRUE(journal.ask_to_end(rental.id));
                                 dropped = world.now;
                               }},
                     rules);
  const Status done = renting().rent(
      rental, [this] { return catalog; }, [](Rental&) { return Verdict{}; });
  ASSERT_FALSE(done);
  EXPECT_NE(done.error().message.find("terminated"), std::string::npos) << done.error().message;
  EXPECT_EQ(passes, 4);
  EXPECT_LE(world.now - dropped, 5'000);
}

TEST_F(RentingCase, AMachineThatNobodyWantsAnyMoreEndsWhileItBoots) {
  with_rules.emplace(RentParts{journal, web, ending, [this](auto) { return &provider; },
                               [&](const RentEvent& event) {
                                 if (event.kind != RentEvent::Kind::booting) return;
                                 EXPECT_TRUE(journal.ask_to_end(rental.id));
                               }});
  EXPECT_FALSE(renting().rent(
      rental, [this] { return catalog; }, [](Rental&) { return Verdict{}; }));
  EXPECT_EQ(provider.specs.size(), 1U);
  EXPECT_EQ(world.alive(), 0U);
}

// An unwanted machine is neither bad nor preempted, whatever first contact reports.
TEST_F(RentingCase, AMachineThatNobodyWantsAnyMoreEndsWhileItIsJudged) {
  for (const auto kind : {Verdict::Kind::good, Verdict::Kind::bad}) {
    rental.id += "i";
    rental.attempts.clear();
    const Status done = renting().rent(
        rental, [this] { return catalog; },
        [&](Rental&) -> Verdict {
          EXPECT_TRUE(journal.ask_to_end(rental.id));
          return {kind, fail(Errc::unavailable, "no sshd").value()};
        });
    ASSERT_FALSE(done);
    EXPECT_NE(done.error().message.find("terminated"), std::string::npos) << done.error().message;
    EXPECT_TRUE(journal.blocks(world.now)->empty());
    EXPECT_EQ(world.alive(), 0U);
  }
  EXPECT_EQ(provider.specs.size(), 2U);
}

TEST_F(RentingCase, ALaunchWithoutAnAnswerThatNobodyWantsIsFirstSettledThenEnded) {
  provider.on_launch = [this](const LaunchSpec&) -> std::optional<LaunchOutcome> {
    EXPECT_TRUE(journal.ask_to_end(rental.id));
    world.rules.lose_answer = 1;
    return std::nullopt;
  };
  int asked = 0;
  provider.on_resolve = [&]() -> LaunchOutcome {
    if (++asked < 9) return {.message = "no answer"};
    return {.kind = LaunchOutcome::Kind::answered, .ids = {world.machines.front().id}};
  };
  const std::int64_t began = world.now;
  EXPECT_FALSE(rent());
  EXPECT_EQ(asked, 9);
  ASSERT_EQ(world.machines.size(), 1U);
  EXPECT_LE(world.machines.front().ended_ms - began, 40'000);  // lists show the machine late
  EXPECT_GT(world.now - began, 60'000);
  EXPECT_TRUE(rental.settled());
}

// A follower that starts after --wait takes up the launched machines and launches none.
TEST_F(RentingCase, AfterTheWaitNothingIsAskedFor) {
  RentRules rules;
  rules.wait = std::chrono::seconds(-1);
  const auto again = [&] {
    with_rules.reset();
    return renting(rules).rent(
        rental, [this] { return catalog; }, [](Rental&) { return Verdict{}; });
  };
  EXPECT_FALSE(again());
  EXPECT_TRUE(provider.specs.empty());
  with_rules.reset();
  ASSERT_TRUE(rent());
  EXPECT_TRUE(again()) << "it runs already";
  EXPECT_EQ(provider.specs.size(), 1U);
  EXPECT_EQ(world.alive(), 1U);
}

}  // namespace
}  // namespace lockstep::cloud
