// How a job ends: the barrier, departures, timeouts, the exchange of reports.
#include "coordinator_testing.h"

namespace lockstep::rendezvous::hub {
namespace {
using testing::nodes;
using namespace std::chrono_literals;
using Fixture = testing::CoordinatorFixture;

TEST(CoordinatorEnd, TheBarrierOpensForAllAndHeedsFailures) {
  Fixture f(nodes(3, 3));
  f.join_all({"a", "b", "c", "spare"});
  f.say("a", Finish{0});
  f.say("b", Failed{0, false, "rank 1 on b failed"});
  EXPECT_EQ(f.told("a"), "rejoin: rank 1 on b failed");
  f.join_all({"a", "b", "c"});
  f.say("c", Finish{1});
  f.lose("c");  // finished before the loss
  EXPECT_EQ(f.told("a"), "-");
  f.say("a", Finish{1});
  EXPECT_EQ(f.agents["a"].last<Finished>(), nullptr);
  f.say("b", Finish{1});
  EXPECT_NE(f.agents["a"].last<Finished>(), nullptr);
  EXPECT_NE(f.agents["b"].last<Finished>(), nullptr);
  EXPECT_NE(f.agents["spare"].last<Ended>(), nullptr);
  f.join("late");
  EXPECT_EQ(f.refused("late"), "the rendezvous 'job' is closed: the job has ended well");
}

TEST(CoordinatorEnd, ANewNodeThatWasToTakePartHearsThatTooFewAreLeft) {
  Fixture f(nodes(3, 4));
  f.join_all({"a", "b", "c", "d"});
  f.lose("d");
  f.join("new");
  f.lose("c");
  f.lose("b");
  EXPECT_EQ(f.agents["new"].last<Ended>(), nullptr);
  EXPECT_NE(f.refused("new").find("2 nodes are left of at least 3"), std::string::npos)
      << f.refused("new");
}

TEST(CoordinatorEnd, NobodyNewIsLetInOnceSomeHaveFinished) {
  Fixture f(nodes(2, 3));
  f.join_all({"a", "b"});
  f.pass(31s);
  f.say("a", Finish{0});
  f.join("c");
  EXPECT_EQ(f.told("b"), "-");
  f.say("b", Finish{0});
  EXPECT_NE(f.agents["c"].last<Ended>(), nullptr);
}

TEST(CoordinatorEnd, TheHostsEndIsEverybodysEndAndAGuestsIsNot) {
  Fixture f(nodes(2, 3));
  f.join_all({"a", "b", "c"});
  f.say("c", Leave{Leave::How::stopped});
  EXPECT_NE(f.agents["c"].last<Left>(), nullptr);
  EXPECT_EQ(f.told("a"), "rejoin: c was stopped");
  f.join_all({"d", "a", "b", "spare"});
  ASSERT_EQ(f.rank("d"), 2);
  f.say("a", Leave{Leave::How::stopped});
  EXPECT_EQ(f.told("b"), "end: a, the host of the rendezvous, was stopped");
  // For a spare the job has not ended well either.
  EXPECT_EQ(f.refused("spare"), "a, the host of the rendezvous, was stopped");
}

TEST(CoordinatorEnd, JoiningTimesOutWithTheReason) {
  Fixture f(nodes(3, 3));
  f.arrive("a").offer.join_timeout_ms = 3000;
  f.join_all({"a", "b"});
  f.pass(4s);
  EXPECT_EQ(f.refused("a"),
            "joining the rendezvous 'job' timed out after 3 s: 2 of 3 nodes have joined (a, b), 1 "
            "missing");
  EXPECT_EQ(f.refused("b"), "-");
}

TEST(CoordinatorEnd, AGuestsPatienceIsItsOwn) {
  Fixture f(nodes(3, 3));
  f.arrive("b").offer.join_timeout_ms = 3000;
  f.join_all({"a", "b"});
  f.pass(4s);
  f.say("b", Leave{Leave::How::failed});
  EXPECT_NE(f.agents["b"].last<Left>(), nullptr);
  EXPECT_TRUE(f.agents["a"].got.empty());
  f.pass(2s);
  EXPECT_EQ(f.agents["a"].status, "1 of 3 nodes have joined (a), 2 missing");
  f.join_all({"c", "d"});
  EXPECT_EQ(f.rank("a"), 0);
}

TEST(CoordinatorEnd, NobodyWasASpareWhenTheHostIsOutOfPatience) {
  Fixture f(nodes(3, 3));
  f.arrive("a").offer.join_timeout_ms = 3000;
  f.join_all({"a", "b"});
  f.pass(4s);
  f.say("a", Leave{Leave::How::failed});
  EXPECT_EQ(f.refused("b"),
            "a, the host of the rendezvous, has given up: joining the rendezvous 'job' timed out "
            "after 3 s: 2 of 3 nodes have joined (a, b), 1 missing");
  EXPECT_TRUE(f.hub->over());
}

TEST(CoordinatorEnd, OneThatNeverHadAPlaceDoesNotEndTheJob) {
  Fixture f(nodes(2, 2));
  f.join_all({"a", "b", "spare"});
  f.arrive("idle");
  for (const auto how : {Leave::How::failed, Leave::How::succeeded}) {
    f.say("idle", Leave{how});
    f.say("spare", Leave{how});
    EXPECT_FALSE(f.hub->over());
    EXPECT_EQ(f.told("a"), "-");
    f.arrive("idle");
    f.join("spare");
  }
  f.say("b", Leave{Leave::How::failed});
  EXPECT_EQ(f.told("a"), "end: the job has failed on b");
}

TEST(CoordinatorEnd, OneThatDoesNotWaitForTheNextRoundLeavesTheOthersToIt) {
  Fixture f(nodes(2, 3));
  f.arrive("c").offer.join_timeout_ms = 3000;
  f.join_all({"a", "b", "c"});
  f.say("b", Failed{0, false, "rank 1 on b failed"});
  f.join_all({"a", "c"});  // b still stops its workers
  f.pass(4s);
  EXPECT_NE(f.refused("c").find("timed out after 3 s"), std::string::npos);
  f.say("c", Leave{Leave::How::failed});
  f.join("b");
  EXPECT_EQ(f.agents["b"].round()->group_world_size, 2);
}

TEST(CoordinatorEnd, ReportsComeTogetherTheFirstFailuresFirst) {
  Fixture f(nodes(3, 3));
  f.join_all({"a", "b", "c"});
  f.say("c", Failed{0, true, "rank 2 on c failed"});
  f.say("a", TellReport{10'000, {"a", 0, "A"}});
  f.say("c", TellReport{10'000, {"c", 2, "C"}});
  EXPECT_EQ(f.agents["a"].last<Reports>(), nullptr);
  f.say("b", TellReport{10'000, {"b", 1, "B"}});
  for (const char* name : {"a", "b", "c"}) {
    const auto* reports = f.agents[name].last<Reports>();
    ASSERT_NE(reports, nullptr);
    EXPECT_EQ(reports->reports, (std::vector<Report>{{"c", 2, "C"}, {"a", 0, "A"}, {"b", 1, "B"}}));
  }
}

TEST(CoordinatorEnd, ReportsThatDoNotComeAreLeftOut) {
  Fixture f(nodes(3, 3));
  f.join_all({"a", "b", "c"});
  f.say("b", Failed{0, true, "x"});
  f.say("a", TellReport{9'000, {"a", 0, "A"}});
  f.pass(7100ms);
  EXPECT_EQ(f.agents["a"].last<Reports>(), nullptr);
  f.pass(200ms);
  ASSERT_NE(f.agents["a"].last<Reports>(), nullptr);
  EXPECT_EQ(f.agents["a"].last<Reports>()->reports.size(), 1U);
  f.say("c", TellReport{9'000, {"c", 2, "C"}});  // too late for a, but still answered
  ASSERT_NE(f.agents["c"].last<Reports>(), nullptr);
  EXPECT_EQ(f.agents["c"].last<Reports>()->reports.size(), 1U);
}

TEST(CoordinatorEnd, WhoeverIsGoneIsNotWaitedForWithItsReport) {
  Fixture f(nodes(3, 3));
  f.join_all({"a", "b", "c"});
  f.say("b", Failed{0, true, "rank 1 on b failed"});
  f.say("b", TellReport{10'000, {"b", 1, "B"}});
  f.lose("b");  // b's report is kept
  f.say("a", TellReport{10'000, {"a", 0, "A"}});
  EXPECT_EQ(f.agents["a"].last<Reports>(), nullptr);
  f.lose("c");
  ASSERT_NE(f.agents["a"].last<Reports>(), nullptr);
  EXPECT_EQ(f.agents["a"].last<Reports>()->reports,
            (std::vector<Report>{{"b", 1, "B"}, {"a", 0, "A"}}));
}

TEST(CoordinatorEnd, OneThatComesBackAfterTheEndHasNoReportToGive) {
  Fixture f(nodes(2, 2));
  f.join_all({"a", "b"});
  f.say("b", Failed{0, true, "rank 1 on b failed"});
  f.lose("b");
  f.arrive("b");
  f.say("a", TellReport{10'000, {"a", 0, "A"}});
  EXPECT_NE(f.agents["a"].last<Reports>(), nullptr);
}

// A rank of an earlier round means nothing in the current round.
TEST(CoordinatorEnd, OneThatIsInTheRoundNoLongerHasNoReportToGive) {
  Fixture f(nodes(2, 3));
  f.arrive("c").offer.join_timeout_ms = 3000;
  f.join_all({"a", "b", "c"});
  f.say("b", Failed{0, false, "rank 1 on b failed"});
  f.join_all({"a", "c"});
  f.pass(4s);
  f.join("b");
  ASSERT_EQ(f.agents["b"].round()->group_world_size, 2);
  f.lose("c");
  f.say("b", Failed{1, true, "rank 1 on b failed"});
  f.say("a", TellReport{10'000, {"a", 0, "A"}});
  EXPECT_EQ(f.agents["a"].last<Reports>(), nullptr);
  f.say("b", TellReport{10'000, {"b", 1, "B"}});
  EXPECT_NE(f.agents["a"].last<Reports>(), nullptr);
}

TEST(CoordinatorEnd, ReportsOfAnEarlierRoundAreForgotten) {
  for (const Ms answered_after : {0s, 10s}) {  // in the first round, or never
    Fixture f(nodes(2, 2));
    f.join_all({"a", "b", "spare"});
    f.say("b", TellReport{10'000, {"b", 1, "early"}});
    f.pass(answered_after);
    f.lose("b");
    f.join("a");
    ASSERT_EQ(f.rank("spare"), 1);
    f.pass(10s);
    f.say("a", Failed{1, true, "rank 0 on a failed"});
    f.say("a", TellReport{10'000, {"a", 0, "A"}});
    EXPECT_EQ(f.agents["a"].last<Reports>(), nullptr);
    f.say("spare", TellReport{10'000, {"spare", 1, "S"}});
    ASSERT_NE(f.agents["a"].last<Reports>(), nullptr);
    EXPECT_EQ(f.agents["a"].last<Reports>()->reports,
              (std::vector<Report>{{"a", 0, "A"}, {"spare", 1, "S"}}));
  }
}

// The report would complete the exchange before b, which failed, has told its own.
TEST(CoordinatorEnd, TheReportOfANodeWithoutAPlaceInTheNextRoundIsForgotten) {
  Fixture f(nodes(2, 3));
  f.arrive("c").offer.join_timeout_ms = 3000;
  f.join_all({"a", "b", "c"});
  f.say("b", Failed{0, false, "rank 1 on b failed"});
  f.join_all({"a", "c"});
  f.pass(4s);
  f.say("c", TellReport{60'000, {"c", 2, "timed out"}});
  f.join("b");
  ASSERT_EQ(f.agents["b"].round()->group_world_size, 2);
  f.say("b", Failed{1, true, "rank 1 on b failed"});
  f.say("a", TellReport{10'000, {"a", 0, "A"}});
  EXPECT_EQ(f.agents["a"].last<Reports>(), nullptr);
  f.lose("c");
  EXPECT_EQ(f.agents["a"].last<Reports>(), nullptr);
  f.say("b", TellReport{10'000, {"b", 1, "B"}});
  ASSERT_NE(f.agents["a"].last<Reports>(), nullptr);
  EXPECT_EQ(f.agents["a"].last<Reports>()->reports,
            (std::vector<Report>{{"b", 1, "B"}, {"a", 0, "A"}}));
}

TEST(CoordinatorEnd, OneThatLeavesWellWithoutWaitingHasFinished) {
  Fixture f(nodes(3, 3));
  f.join_all({"a", "b", "c"});
  f.say("b", Leave{Leave::How::succeeded});
  EXPECT_FALSE(f.hub->over());
  f.say("a", Finish{0});
  f.say("c", Leave{Leave::How::succeeded});
  EXPECT_NE(f.agents["a"].last<Finished>(), nullptr);
}

TEST(CoordinatorEnd, NobodyNewIsLetInOnceOneHasFinishedAndLeft) {
  Fixture f(nodes(2, 3));
  f.join_all({"a", "b"});
  f.pass(31s);
  f.say("b", Finish{0});
  f.lose("b");
  f.join("c");
  EXPECT_EQ(f.told("a"), "-");
}

TEST(CoordinatorEnd, OnlyASpareHearsThatItWasNotNeeded) {
  Fixture f(nodes(2, 2));
  f.join_all({"a", "b", "spare"});
  f.say("b", Failed{0, false, "rank 1 on b failed"});
  f.join("b");
  f.say("a", Leave{Leave::How::failed});
  EXPECT_EQ(f.refused("b"), "the job has failed on a");
  EXPECT_NE(f.agents["spare"].last<Ended>(), nullptr);
}

TEST(CoordinatorEnd, NoRoundIsPlacedAfterTheEnd) {
  Fixture f(nodes(2, 2));
  f.mute_store = true;
  f.join_all({"a", "b"});
  f.hub->shut_down("the host was stopped", f.now);
  f.say("a", StoreOffer{0, "addr-a", 7000, ""});
  EXPECT_EQ(f.refused("b"), "the host was stopped");
}

// The hub would wake up for it without a pause until the other nodes have left.
TEST(CoordinatorEnd, ALastCallEndsWithTheJob) {
  Fixture f(nodes(2, 4));
  f.join_all({"a", "b"});
  f.hub->shut_down("the host was stopped", f.now);
  f.pass(31s);
  EXPECT_GT(f.hub->next_time(), f.now);
}

TEST(CoordinatorEnd, ASparesPatienceBeginsWhenItsRoundCanBegin) {
  Fixture f(nodes(2, 2));
  f.join_all({"a", "b"});
  f.arrive("spare").offer.join_timeout_ms = 3000;
  f.join("spare");
  f.pass(10s);
  EXPECT_EQ(f.refused("spare"), "-");
  f.lose("b");
  f.pass(2s);  // a stops its workers
  EXPECT_EQ(f.refused("spare"), "-");
  f.pass(2s);
  EXPECT_NE(f.refused("spare").find("timed out after 3 s"), std::string::npos);
}

TEST(CoordinatorEnd, ReportsAreCountedByNodeAndCutByTheirSize) {
  Fixture f(nodes(5, 5));
  const auto names = {"a", "b", "c", "d", "e"};
  f.join_all(names);
  f.say("a", Failed{0, true, "rank 0 on a failed"});
  for (int i = 0; i < 5; ++i)
    f.say("a", TellReport{10'000, {"a", 0, "A"}});
  EXPECT_EQ(f.agents["a"].last<Reports>(), nullptr);
  for (const char* name : names)
    f.say(name, TellReport{10'000, {name, 0, std::string(kMaxReport, 'x')}});
  ASSERT_NE(f.agents["a"].last<Reports>(), nullptr);
  EXPECT_EQ(f.agents["a"].last<Reports>()->reports.size(), kMaxReports / kMaxReport);
}

}  // namespace
}  // namespace lockstep::rendezvous::hub
