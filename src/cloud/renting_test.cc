// Tests renting and reconciling, case by case.
#include "cloud/renting.h"

#include "base/error_testing.h"
#include "cloud/reconcile.h"
#include "cloud/renting_case_testing.h"

#include <gtest/gtest.h>

#include <fcntl.h>
#include <unistd.h>

namespace lockstep::cloud {
namespace {

using testing::kind_rules;
using testing::place;
using testing::refusal;
using testing::RentingCase;
using testing::SimKind;
using testing::SimProvider;
using testing::SimRecords;
using testing::SimRules;
using testing::SimWeb;
using testing::SimWorld;

TEST_F(RentingCase, WhatCouldNotBeEndedIsSaid) {
  provider.deaf = true;
  const Status done = rent({Verdict::Kind::stop, fail(Errc::unavailable, "no driver").value()});
  ASSERT_FALSE(done);
  EXPECT_NE(done.error().message.find("no driver"), std::string::npos) << done.error().message;
  EXPECT_NE(done.error().message.find("not seen gone"), std::string::npos) << done.error().message;
  EXPECT_EQ(done.error().hint, "there may still be sim g1 in r1-a i-0: `lockstep down c` ends it");
}

TEST_F(RentingCase, NothingIsBadInputOnceAMachineWasAskedFor) {
  const Status done = rent({Verdict::Kind::stop, fail(Errc::invalid_input, "no such key").value()});
  ASSERT_FALSE(done);
  EXPECT_EQ(code_of(done), Errc::unavailable) << done.error().message;
  EXPECT_NE(done.error().message.find("no such key"), std::string::npos);
}

TEST_F(RentingCase, WhereAnAccountCannotHaveSpotItGoesOnDemand) {
  catalog.offers = {place("r1", "r1-a", 0.3), place("r2", "r2-a", 0.4), place("r1", "r1-a", 1.0)};
  catalog.offers[0].spot = catalog.offers[1].spot = true;
  rental.wish.spot = SpotWish::prefer;
  provider.on_launch = [](const LaunchSpec& spec) {
    return spec.offer.spot ? std::optional(refusal(Refusal::spot_out, "no role")) : std::nullopt;
  };
  ASSERT_TRUE(rent());
  ASSERT_EQ(provider.specs.size(), 2U);  // the account cannot have spot in the other region either
  EXPECT_FALSE(provider.specs[1].offer.spot);
  EXPECT_EQ(passes, 1);
}

TEST_F(RentingCase, WhoWantsOnlySpotThatTheAccountCannotHaveIsToldAtOnce) {
  for (Offer& offer : catalog.offers)
    offer.spot = true;
  rental.wish.spot = SpotWish::only;
  provider.on_launch = [](const LaunchSpec& /*spec*/) {
    return std::optional(refusal(Refusal::spot_out, "no role"));
  };
  EXPECT_FALSE(rent());
  EXPECT_EQ(provider.specs.size(), 1U);
  EXPECT_EQ(passes, 1);
}

TEST_F(RentingCase, AStopTeachesNothing) {
  provider.silent = true;
  provider.on_prepare = [this] { world.stopped = true; };
  const Status done = rent();
  ASSERT_FALSE(done);
  EXPECT_EQ(code_of(done), Errc::canceled);
  EXPECT_EQ(provider.prepared, 1);
  EXPECT_TRUE(journal.blocks(world.now)->empty());
}

TEST_F(RentingCase, ASilentRegionIsLeftOutAndNotRemembered) {
  provider.silent = true;
  provider.on_prepare = [this] { provider.silent = provider.prepared == 1; };
  catalog.offers.push_back(place("r2", "r2-a", 3.0));
  ASSERT_TRUE(rent());
  EXPECT_EQ(provider.prepared, 2);
  EXPECT_EQ(rental.attempts.back().offer.region, "r2");
  EXPECT_TRUE(journal.blocks(world.now)->empty());
}

TEST_F(RentingCase, WithoutTheKeysOfItsProviderNothingIsSaidToRun) {
  ASSERT_TRUE(rent());
  keys = false;
  const Status done = rent();
  ASSERT_FALSE(done);
  EXPECT_NE(done.error().message.find("sim: without credentials"), std::string::npos);
  EXPECT_NE(done.error().hint.find("there may still be"), std::string::npos);
}

// Holding the account keeps `down --all` from removing the network and keys of a launch under way.
// After a removal they are made anew.
TEST_F(RentingCase, WhatALaunchNeedsIsMadeWhileTheAccountIsHeld) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  const io::Fd reader(ends[0]);
  const auto held = [&] { return fcntl(ends[1], F_GETFD) >= 0; };
  with_rules.emplace(RentParts{.journal = journal,
                               .web = web,
                               .ending = ending,
                               .provider = [this](auto) { return &provider; },
                               .tell = {},
                               .hold_account = [&]() -> Result<io::Fd> {
                                 EXPECT_EQ(journal.open_rentals()->size(), 1U);
                                 return io::Fd(ends[1]);
                               }});
  provider.on_prepare = [&] { EXPECT_TRUE(held()); };
  provider.on_launch = [&](const LaunchSpec&) {
    EXPECT_FALSE(held());
    return std::nullopt;
  };
  EXPECT_TRUE(rent());
  EXPECT_EQ(provider.prepared, 1);
}

TEST_F(RentingCase, AFullDiskKeepsAnUnansweredLaunchFromNothing) {
  world.rules.lose_answer = 1;
  RentRules rules;
  rules.unknown_patience = std::chrono::seconds(0);
  renting(rules);
  provider.deaf = true;
  ASSERT_FALSE(rent());
  ASSERT_EQ(world.alive(), 1U);
  Rental found = kept();
  provider.deaf = false;
  world.rules.lose_answer = 0;
  fill_disk(true);
  EXPECT_FALSE(renting().machines().give_back(found));  // the journal could not be written
  EXPECT_EQ(world.alive(), 0U);
  fill_disk(false);
  found = kept();
  EXPECT_TRUE(renting().machines().give_back(found));
  EXPECT_EQ(cost_so_far(kept(), world.now), world.billed());
}

TEST_F(RentingCase, NothingIsRentedWhenTheDiskIsFull) {
  ASSERT_TRUE(journal.keep(rental));
  provider.on_prepare = [this] { world.rules.full = 1; };
  const Status done = rent();
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().message.find("nothing is rented, the journal is not kept"), 0U);
  EXPECT_TRUE(world.machines.empty());
}

TEST_F(RentingCase, WhoeverMustKnowOfALaunchIsToldBeforeIt) {
  std::size_t told = 0;
  before_call = [&](const Rental& one) -> Status {
    EXPECT_EQ(one.attempts.back().state, Attempt::State::asked);
    EXPECT_EQ(kept().attempts.size(), one.attempts.size());
    if (++told > 1) return fail(Errc::unavailable, "nobody guards it");
    return {};
  };
  provider.on_launch = [](const auto&) { return refusal(Refusal::next_zone, "full"); };
  const Status done = rent();
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().message, "nobody guards it");
  EXPECT_EQ(provider.specs.size(), 1U);
  EXPECT_EQ(kept().attempts.size(), 1U) << "the second was never made";
  EXPECT_TRUE(world.machines.empty());
}

TEST_F(RentingCase, ABillEndsWithTheLeaseHoweverLateThatIsSeen) {
  ASSERT_TRUE(rent());
  world.pass_time(48 * kMsPerHour);
  ASSERT_TRUE(renting().machines().give_back(rental));
  EXPECT_EQ(cost_so_far(rental, world.now), world.billed());
}

TEST_F(RentingCase, ARentalWhoseTimeIsOverIsNotTakenUp) {
  ASSERT_TRUE(rent());
  world.machines.front().ends_ms = 0;  // the machine did not end by itself
  world.pass_time(7 * kMsPerHour);
  EXPECT_FALSE(rent());
  EXPECT_EQ(world.alive(), 0U);
}

TEST_F(RentingCase, WhatIsGivenBackIsNotRentedAnew) {
  rental.wanted = false;
  const Status done = rent();
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().message, "what was rented for 'c' is being terminated");
  EXPECT_TRUE(world.disk.empty());
}

TEST_F(RentingCase, TheLifetimeCountsFromTheFirstMachine) {
  ASSERT_TRUE(rent());
  const std::int64_t end = rental.ends_ms;
  world.pass_time(kMsPerHour);
  ASSERT_TRUE(renting().machines().end_all(rental, "taken"));
  ASSERT_TRUE(rent());
  EXPECT_NEAR(static_cast<double>(rental.ends_ms), static_cast<double>(end), 5'000);
}

TEST_F(RentingCase, WhatTheBudgetCannotPayIsNotRented) {
  rental.terms.budget = kDollar / 10;  // 6 minutes
  const Status done = rent();
  ASSERT_FALSE(done);
  EXPECT_NE(done.error().message.find("what is left of --budget 0.10 pays for 3"),
            std::string::npos)
      << done.error().message;
  EXPECT_EQ(passes, 1);
  EXPECT_TRUE(world.machines.empty());
}

TEST_F(RentingCase, ALateRefusalMeansWhatItSays) {
  provider.on_launch = [](const LaunchSpec& spec) -> std::optional<LaunchOutcome> {
    if (spec.offer.region == "r1") return LaunchOutcome{.message = "no answer"};
    return std::nullopt;
  };
  provider.on_resolve = [] { return refusal(Refusal::next_region, "VcpuLimitExceeded"); };
  catalog.offers.push_back(place("r2", "r2-a", 3.0));
  ASSERT_TRUE(rent());
  EXPECT_EQ(provider.specs.size(), 2U);  // not the other zone of r1
  ASSERT_EQ(journal.blocks(world.now)->size(), 1U);
  EXPECT_EQ(journal.blocks(world.now)->front().kind, Block::Kind::quota);
}

TEST_F(RentingCase, AskingForEverStaysSmallAndUsesNoTokenTwice) {
  RentRules rules;
  rules.wait = std::nullopt;
  rules.most_kept = 5;
  renting(rules);
  provider.on_launch = [this](const LaunchSpec& spec) -> std::optional<LaunchOutcome> {
    if (spec.attempt >= 500) return std::nullopt;
    EXPECT_LE(rental.attempts.size(), 7U);
    return refusal(Refusal::next_zone, "InsufficientInstanceCapacity");
  };
  ASSERT_TRUE(rent());
  ASSERT_EQ(provider.specs.size(), 500U);
  for (std::size_t i = 0; i < provider.specs.size(); ++i)
    EXPECT_EQ(provider.specs[i].attempt, static_cast<int>(i) + 1);
}

TEST_F(RentingCase, ABidLeavesRoomForDiskAndAddress) {
  for (Offer& offer : catalog.offers) {
    offer.spot = true;
    offer.address_per_hour = 5'000;
    offer.disk_per_gb_month = 730'000;
  }
  rental.wish.spot = SpotWish::only;
  rental.wish.disk_gb = 100;
  rental.wish.nodes = 2;
  rental.wish.max_price = 4 * kDollar;
  ASSERT_TRUE(rent());
  EXPECT_EQ(provider.specs.front().max_spot, 2 * kDollar - 5'000 - 100'000);
}

TEST_F(RentingCase, WhatAnotherProcessWroteIsReadOnceTheLockIsHeld) {
  ASSERT_TRUE(journal.keep(rental));
  // Another lockstep rents and exits between the read of the journal and the lock.
  (void)swept([this](const std::string&) {
    EXPECT_TRUE(rent());
    return true;
  });
  ASSERT_EQ(kept().attempts.size(), 1U);
  EXPECT_EQ(kept().live().size(), 1U);
}

TEST_F(RentingCase, AMachineThatItsRentalDoesNotKnowIsEnded) {
  ASSERT_TRUE(rent());
  auto late = world.machines.front();
  late.id = "i-late";
  late.token = "intent-9";
  world.machines.push_back(late);
  world.pass_time(30'000);
  const Reconciled done = swept();
  ASSERT_EQ(done.ended.size(), 1U);
  EXPECT_EQ(done.ended.front().machine.id, "i-late");
  EXPECT_EQ(world.alive(), 1U);
}

TEST_F(RentingCase, AfterItsLeaseARentalIsGivenBackByAnyCommand) {
  ASSERT_TRUE(rent());
  world.machines.front().ends_ms = 0;  // as if only a client with keys could terminate it
  world.pass_time(6 * kMsPerHour - 300'000);
  EXPECT_TRUE(swept().closed.empty());
  EXPECT_EQ(world.alive(), 1U);
  world.pass_time(420'000);
  EXPECT_EQ(swept().closed.size(), 1U);
  EXPECT_EQ(world.alive(), 0U);
}

TEST_F(RentingCase, ARentalWhoseJobGoesOnElsewhereIsNotClosed) {
  ASSERT_TRUE(rent());
  RentedJob job{.rental = rental.id, .cluster = rental.cluster, .words = {}, .folder = "/"};
  job.stage = RentedJob::Stage::working;
  ASSERT_TRUE(journal.keep_job(job));
  world.machines.front().ended_ms = world.now;  // preempted, and no client has looked yet
  world.pass_time(120'000);
  EXPECT_TRUE(swept().closed.empty());
  EXPECT_TRUE(kept().settled());
  job.stage = RentedJob::Stage::ended;
  ASSERT_TRUE(journal.keep_job(job));
  EXPECT_EQ(swept().closed.size(), 1U);
}

TEST_F(RentingCase, WithoutKeysReconcileSaysThatMachinesAreUnknown) {
  ASSERT_TRUE(rent());
  const auto done =
      reconcile({journal, ending, {}, "me", [](const auto&) { return true; }, [](const auto&) {}});
  ASSERT_TRUE(done);
  ASSERT_EQ(done->unheard.size(), 1U);
  EXPECT_EQ(done->unheard.front().provider, "sim");
}

TEST_F(RentingCase, ForeignMachinesAreLeftAlone) {
  ASSERT_TRUE(rent());
  world.machines.front().owner = "another";
  world.pass_time(30'000);
  const Reconciled done = swept();
  EXPECT_EQ(done.foreign.size(), 1U);
  EXPECT_EQ(world.alive(), 1U);
}

class RentingByName : public RentingCase {
 protected:
  RentingByName() : RentingCase(SimKind::by_name) {}
};

TEST_F(RentingByName, AMachineThatShowsUpLateIsEndedAtOnce) {
  // The provider reports the first launch as failed, although it made a machine.
  provider.on_launch = [this](const LaunchSpec& spec) -> std::optional<LaunchOutcome> {
    if (spec.attempt != 1) return std::nullopt;
    auto late = testing::SimMachine{.id = "i-late",
                                    .provider = "sim",
                                    .intent = "intent",
                                    .owner = "me",
                                    .token = "late",
                                    .zone = "r1-a",
                                    .launched_ms = world.now};
    late.listed_ms = world.now + 1'000;
    world.machines.push_back(late);
    return refusal(Refusal::next_zone, "InsufficientInstanceCapacity");
  };
  ASSERT_TRUE(rent());
  EXPECT_EQ(world.alive(), 1U);
  EXPECT_NE(world.machines.front().ended_ms, 0);
  EXPECT_TRUE(is_whole(rental));
}

TEST(Renting, TheClientNeverComesBackAndTheLeaseEndsAll) {
  Catalog catalog{.offers = {place("r1", "r1-a", 1), place("r1", "r1-b", 1)}, .silent = {}};
  for (unsigned seed = 0; seed < 300; ++seed) {
    SimRules rules;
    rules.kill = 0.1;
    SimWorld world(seed, rules);
    SimWeb web(world, false);
    SimProvider provider(world, "sim", SimKind::token);
    Journal journal(std::make_unique<SimRecords>(world));
    Renting renting({journal, web, web, [&](std::string_view) { return &provider; }, {}});
    Rental rental{.id = "intent", .cluster = "c", .owner = "me"};
    rental.wish.gpu = *parse_gpu_wish("L4:1");
    rental.wish.nodes = 2;
    rental.terms.lifetime_s = 6LL * 3600;
    try {
      (void)renting.rent(
          rental, [&] { return catalog; }, [](Rental&) { return Verdict{}; });
    } catch (const testing::Killed&) {
    }
    world.pass_time((6LL * 3600 + 60) * 1000);
    EXPECT_EQ(world.alive(), 0U) << seed;
  }
}

}  // namespace
}  // namespace lockstep::cloud
