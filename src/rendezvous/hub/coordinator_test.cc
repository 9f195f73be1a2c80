// The coordinator's rules, one by one.
#include "coordinator_testing.h"

namespace lockstep::rendezvous::hub {
namespace {
using testing::nodes;
using namespace std::chrono_literals;
using Fixture = testing::CoordinatorFixture;

TEST(Coordinator, AFixedNumberOfNodesMeetsAtOnceInFourMessages) {
  Fixture f(nodes(3, 3));
  f.join_all({"b", "c", "a"});
  EXPECT_EQ(f.rank("a"), 0);  // the host, though it came last
  EXPECT_EQ(f.rank("b"), 1);
  EXPECT_EQ(f.rank("c"), 2);
  const Round& round = *f.agents["c"].round();
  EXPECT_EQ(round.number, 0);
  EXPECT_EQ(round.group_world_size, 3);
  EXPECT_EQ(round.base_rank, 2);
  EXPECT_EQ(round.master_addr, "addr-a");
  EXPECT_EQ(round.master_port, 7000);
  EXPECT_EQ(f.agents["b"].heard, 2);
  EXPECT_EQ(f.agents["a"].heard, 4);
}

TEST(Coordinator, RanksFollowWorkersAndRoles) {
  Fixture f(nodes(3, 3));
  f.arrive("b").offer.local_world_size = 4;
  f.arrive("c").offer.role = "reader";
  f.arrive("a").offer.local_world_size = 2;
  f.join_all({"a", "b", "c"});
  const Round& b = *f.agents["b"].round();
  EXPECT_EQ(b.base_rank, 2);
  EXPECT_EQ(b.world_size, 7);
  EXPECT_EQ(b.role_world_size, 6);
  const Round& c = *f.agents["c"].round();
  EXPECT_EQ(c.base_rank, 6);
  EXPECT_EQ(c.role_base_rank, 0);
  EXPECT_EQ(c.role_world_size, 1);
}

TEST(Coordinator, TheLastCallWaitsForMoreAndStartsAgainWhenOneGoes) {
  Fixture f(nodes(2, 4));
  f.join_all({"a", "b"});
  f.pass(20s);
  EXPECT_EQ(f.agents["a"].status, "2 nodes have joined (a, b), last call for up to 4");
  f.lose("b");
  f.pass(5s);
  EXPECT_EQ(f.agents["a"].status, "1 of at least 2 nodes have joined (a), 1 missing");
  f.join("c");
  f.pass(29s);
  EXPECT_EQ(f.agents["a"].round(), nullptr);
  f.pass(1100ms);
  EXPECT_EQ(f.rank("c"), 1);
}

TEST(Coordinator, AddressesSortAsNumbersAndNodeRanksAsGiven) {
  auto settings = nodes(3, 3);
  settings.order = RankOrder::address;
  Fixture f(settings);
  f.arrive("a").offer.address = "10.0.0.10";
  f.arrive("b").offer.address = "10.0.0.9";
  f.arrive("c").offer.address = "10.0.0.100";
  f.join_all({"c", "a", "b"});
  EXPECT_EQ(f.rank("b"), 0);
  EXPECT_EQ(f.rank("a"), 1);
  EXPECT_EQ(f.rank("c"), 2);

  settings.order = RankOrder::node_rank;
  Fixture g(settings);
  g.arrive("a").offer.node_rank = 2;
  g.arrive("b").offer.node_rank = 0;
  g.arrive("c").offer.node_rank = 1;
  g.join_all({"a", "b", "c"});
  EXPECT_EQ(g.rank("b"), 0);
  EXPECT_EQ(g.rank("c"), 1);
  EXPECT_EQ(g.rank("a"), 2);
}

TEST(Coordinator, TwoWithOneNodeRankTheSecondHearsBothNames) {
  Fixture f(nodes(3, 3));
  f.arrive("b").offer.node_rank = 1;
  f.arrive("c").offer.node_rank = 1;
  f.join_all({"b", "c"});
  EXPECT_EQ(f.refused("c"), "two nodes have --node-rank 1: b (addr-b) and c (addr-c)");
  EXPECT_TRUE(f.agents["c"].closed);
  EXPECT_TRUE(f.agents["b"].got.empty());
}

TEST(Coordinator, DifferentNnodesAreNamed) {
  Fixture f(nodes(2, 4));
  f.arrive("b").offer.max_nodes = 2;
  f.join("b");
  EXPECT_EQ(f.refused("b"),
            "b asks for --nnodes 2, the rendezvous 'job' was opened with --nnodes 2:4");
}

TEST(Coordinator, AFailureIsToldToAllOthersAtOnceAndCountsOnce) {
  Fixture f(nodes(3, 3));
  f.join_all({"a", "b", "c"});
  f.say("b", Failed{0, false, "rank 1 on b failed"});
  EXPECT_EQ(f.told("a"), "rejoin: rank 1 on b failed");
  EXPECT_EQ(f.told("c"), "rejoin: rank 1 on b failed");
  EXPECT_EQ(f.told("b"), "-");
  f.say("c", Failed{0, false, "rank 2 on c failed"});
  EXPECT_EQ(f.agents["a"].got.size(), 3U);  // store, placed, one interruption
  f.join_all({"c", "b"});
  f.pass(2s);
  EXPECT_EQ(f.agents["b"].status, "waiting for a to stop its workers and join again");
  f.join("a");
  EXPECT_EQ(f.agents["a"].round()->number, 1);
  EXPECT_EQ(f.agents["a"].round()->restarts, 1);
  EXPECT_EQ(f.rank("a"), 0);
  EXPECT_EQ(f.rank("b"), 1);
}

TEST(Coordinator, TheLowestMaxRestartsHoldsForAll) {
  Fixture f(nodes(2, 2));
  f.arrive("b").offer.max_restarts = 1;
  f.join_all({"a", "b"});
  f.say("a", Failed{0, false, "first"});
  f.join_all({"a", "b"});
  f.say("a", Failed{1, false, "second"});
  EXPECT_EQ(f.told("b"), "end: second");
  EXPECT_EQ(f.told("a"), "end: second");  // it thought it had restarts left
  f.join("a");
  EXPECT_EQ(f.refused("a"), "the rendezvous 'job' is closed: second");
}

TEST(Coordinator, AFinalFailureEndsForAllAndSparesEndWell) {
  Fixture f(nodes(2, 2));
  f.join_all({"a", "b", "spare"});
  f.pass(1s);
  EXPECT_EQ(f.agents["spare"].status, "round 0 runs with 2 nodes (a, b), this one is a spare");
  f.say("b", Failed{0, true, "rank 1 on b failed"});
  EXPECT_EQ(f.told("a"), "end: rank 1 on b failed");
  EXPECT_EQ(f.told("b"), "-");
  EXPECT_NE(f.agents["spare"].last<Ended>(), nullptr);
}

TEST(Coordinator, ASpareTakesTheLostNodesPlaceWithoutARestartCounted) {
  Fixture f(nodes(3, 3));
  f.join_all({"a", "b", "c", "spare"});
  f.lose("b");
  EXPECT_EQ(f.told("a"), "rejoin: b is gone: the connection was closed");
  f.join_all({"c", "a"});
  EXPECT_EQ(f.rank("a"), 0);
  EXPECT_EQ(f.rank("spare"), 1);
  EXPECT_EQ(f.rank("c"), 2);
  EXPECT_EQ(f.agents["spare"].round()->restarts, 0);
}

TEST(Coordinator, ALostNodeEndsAllWhenTooFewAreLeft) {
  Fixture f(nodes(2, 2));
  f.join_all({"a", "b"});
  f.lose("b");
  EXPECT_EQ(f.told("a"), "end: b is gone: the connection was closed; 1 node is left of at least 2");
  f.join("a");
  EXPECT_EQ(f.refused("a"),
            "the rendezvous 'job' is closed: b is gone: the connection was closed; 1 node is left "
            "of at least 2");
}

TEST(Coordinator, TooFewAreLeftAlsoWhileTheyRejoin) {
  Fixture f(nodes(2, 3));
  f.join_all({"a", "b", "c"});
  f.lose("c");
  f.join("a");
  f.lose("b");
  EXPECT_EQ(f.refused("a"), "b is gone: the connection was closed; 1 node is left of at least 2");
}

TEST(Coordinator, SurvivorsKeepTheirOrderAndNewNodesComeAfterThem) {
  Fixture f(nodes(2, 4));
  f.join_all({"d", "c", "b", "a"});
  f.lose("b");
  f.join_all({"d", "c", "a"});
  EXPECT_EQ(f.rank("a"), 0);
  EXPECT_EQ(f.rank("c"), 1);
  EXPECT_EQ(f.rank("d"), 2);
  f.join("aa");
  EXPECT_EQ(f.told("a"), "rejoin: new nodes want to take part: aa");
  f.join_all({"a", "c", "d"});
  EXPECT_EQ(f.rank("d"), 2);
  EXPECT_EQ(f.rank("aa"), 3);
}

TEST(Coordinator, SilenceEvictsAndTheFrozenOneIsToldWhenItWakes) {
  Fixture f(nodes(2, 3));
  f.join_all({"a", "b", "c"});
  f.pass(4900ms, {"b"});
  EXPECT_EQ(f.told("a"), "-");
  f.pass(1100ms, {"b"});
  EXPECT_EQ(f.told("a"), "rejoin: b is gone: nothing was heard of it for 5.0 s");
  EXPECT_EQ(f.told("b"),
            "rejoin: the others took this node for gone: they had heard nothing of it for 5.0 s");
  EXPECT_TRUE(f.agents["b"].closed);
  f.join_all({"a", "c"});
  EXPECT_EQ(f.rank("c"), 1);
  f.arrive("b");
  f.join("b");
  f.join_all({"a", "c"});
  EXPECT_EQ(f.rank("b"), 2);
}

// Now just before a tick, now just after it: no more than a beat's time apart.
TEST(Coordinator, BeatsBesideTheTicksAreNoSilence) {
  auto settings = nodes(2, 2);
  settings.dead = settings.heartbeat * 2;
  Fixture f(settings);
  f.join_all({"a", "b"});
  const auto beat = [&](Ms after) {
    f.now += after;
    for (const auto* name : {"a", "b"})
      f.hub->hear(f.agents[name].peer, f.now);
  };
  const auto tick = [&](Ms after) {
    f.now += after;
    f.hub->tick(f.now);
    f.deliver();
  };
  for (int i = 0; i < 4; ++i) {
    beat(995ms);  // 5 ms before the tick
    tick(10ms);
    tick(1000ms);
    beat(5ms);
    tick(990ms);
  }
  EXPECT_EQ(f.agents["a"].last<Interrupted>(), nullptr);
  EXPECT_EQ(f.agents["b"].last<Interrupted>(), nullptr);
}

// ... although its clock went on and what the others sent meanwhile is still unread.
TEST(Coordinator, AShortSleepOfTheHostIsNobodysSilenceWithFewBeats) {
  auto settings = nodes(2, 2);
  settings.dead = settings.heartbeat * 2;
  Fixture f(settings);
  f.join_all({"a", "b"});
  f.pass(1s);
  f.now += 900ms;
  f.hub->tick(f.now);
  f.now += 6s;
  f.hub->tick(f.now);
  f.deliver();
  EXPECT_EQ(f.agents["b"].last<Interrupted>(), nullptr);
}

TEST(Coordinator, ATimeInWhichTheHostItselfSleptIsNobodysSilence) {
  Fixture f(nodes(2, 2));
  f.join_all({"a", "b"});
  f.pass(1s);
  f.now += 60s;
  f.hub->tick(f.now);
  f.deliver();
  EXPECT_EQ(f.told("a"), "-");
  f.pass(6s);
  EXPECT_EQ(f.told("a"), "-");
  EXPECT_FALSE(f.agents["b"].closed);
}

TEST(Coordinator, OneThatGaveUpOnASilentHostIsWaitedFor) {
  Fixture f(nodes(2, 2));
  f.join_all({"a", "b"});
  f.say("b", Leave{Leave::How::returns});
  EXPECT_EQ(f.told("a"), "rejoin: b has lost its connection to the rendezvous");
  f.join("a");
  f.pass(2s);
  EXPECT_EQ(f.agents["a"].status,
            "waiting for b (lost its connection) to stop its workers and join again");
  f.arrive("b");
  f.join("b");
  EXPECT_EQ(f.rank("b"), 1);
  // And if it doesn't come:
  f.say("b", Leave{Leave::How::returns});
  f.join("a");
  f.pass(11s);
  EXPECT_EQ(f.refused("a"),
            "b is gone: it lost its connection and did not come back; 1 node is left of at least "
            "2");
}

TEST(Coordinator, OneThatComesBackMayTakeSeveralConnectionsForIt) {
  Fixture f(nodes(2, 2));
  f.join_all({"a", "b"});
  f.say("b", Leave{Leave::How::returns});
  f.join("a");
  f.arrive("b");
  f.lose("b");
  EXPECT_EQ(f.refused("a"), "-");
  f.arrive("b");
  f.join("b");
  EXPECT_EQ(f.rank("b"), 1);
}

TEST(Coordinator, ANewConnectionReplacesTheOldOne) {
  Fixture f(nodes(2, 2));
  f.join_all({"a", "b"});
  f.arrive("b");
  EXPECT_EQ(f.told("a"), "rejoin: b came back on a new connection");
  f.join_all({"a", "b"});
  EXPECT_EQ(f.rank("b"), 1);
}

// Else those that are fewer than max would all wait for another last call.
TEST(Coordinator, ANewConnectionWhileARoundIsOfferedKeepsThePlace) {
  Fixture f(nodes(2, 4));
  f.mute_store = true;
  f.join_all({"a", "b"});
  f.pass(31s);
  const PeerId before = f.agents["b"].peer;
  f.arrive("b");
  EXPECT_EQ(f.hub->peers(), 2U);
  EXPECT_EQ(f.agents["a"].got.size(), 1U);  // the store is wanted once
  f.say("a", StoreOffer{0, "addr-a", 7000, ""});
  EXPECT_EQ(f.rank("b"), 1);
  f.join("b");  // it has crossed the place
  f.hub->lose(before, "the connection was closed", f.now);
  f.deliver();
  EXPECT_EQ(f.rank("a"), 0);
  EXPECT_EQ(f.rank("b"), 1);
  EXPECT_EQ(f.agents["b"].round()->number, 0);
}

TEST(Coordinator, RankZeroOnANewConnectionIsAskedForTheStoreAgain) {
  Fixture f(nodes(2, 2));
  f.mute_store = true;
  f.join_all({"a", "b"});
  f.mute_store = false;
  f.arrive("a");
  EXPECT_EQ(f.rank("a"), 0);
  EXPECT_EQ(f.rank("b"), 1);
  EXPECT_EQ(f.agents["b"].round()->number, 0);
}

TEST(Coordinator, TheBarrierOpensForAllAndHeedsFailures) {
  Fixture f(nodes(3, 3));
  f.join_all({"a", "b", "c", "spare"});
  f.say("a", Finish{0});
  f.say("b", Failed{0, false, "rank 1 on b failed"});
  EXPECT_EQ(f.told("a"), "rejoin: rank 1 on b failed");
  f.join_all({"a", "b", "c"});
  f.say("c", Finish{1});
  f.lose("c");  // done, and gone
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

TEST(Coordinator, ANewNodeThatWasToTakePartHearsThatTooFewAreLeft) {
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

TEST(Coordinator, NobodyNewIsLetInOnceSomeHaveFinished) {
  Fixture f(nodes(2, 3));
  f.join_all({"a", "b"});
  f.pass(31s);
  f.say("a", Finish{0});
  f.join("c");
  EXPECT_EQ(f.told("b"), "-");
  f.say("b", Finish{0});
  EXPECT_NE(f.agents["c"].last<Ended>(), nullptr);
}

TEST(Coordinator, TheHostsEndIsEverybodysEndAndAGuestsIsNot) {
  Fixture f(nodes(2, 3));
  f.join_all({"a", "b", "c"});
  f.say("c", Leave{Leave::How::stopped});
  EXPECT_NE(f.agents["c"].last<Left>(), nullptr);
  EXPECT_EQ(f.told("a"), "rejoin: c was stopped");
  f.join_all({"a", "b"});
  f.say("a", Leave{Leave::How::stopped});
  EXPECT_EQ(f.told("b"), "end: a, the host of the rendezvous, was stopped");
}

TEST(Coordinator, JoiningTimesOutWithTheReason) {
  Fixture f(nodes(3, 3));
  f.arrive("a").offer.join_timeout_ms = 3000;
  f.join_all({"a", "b"});
  f.pass(4s);
  EXPECT_EQ(f.refused("a"),
            "joining the rendezvous 'job' timed out after 3 s: 2 of 3 nodes have joined (a, b), 1 "
            "missing");
  EXPECT_EQ(f.refused("b"), "-");
}

TEST(Coordinator, AGuestsPatienceIsItsOwn) {
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

TEST(Coordinator, NobodyWasASpareWhenTheHostIsOutOfPatience) {
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

TEST(Coordinator, OneThatNeverHadAPlaceDoesNotEndTheJob) {
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

TEST(Coordinator, OneThatDoesNotWaitForTheNextRoundLeavesTheOthersToIt) {
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

TEST(Coordinator, RankZeroWithoutAStoreEndsTheJob) {
  Fixture f(nodes(2, 2));
  f.store_error = "port 29500 is taken";
  f.join_all({"a", "b"});
  EXPECT_EQ(f.refused("b"),
            "a is rank 0 and could not open the workers' store: port 29500 is taken");
}

TEST(Coordinator, RankZeroLostBeforeItsAnswerIsReplaced) {
  auto settings = nodes(2, 3);
  settings.order = RankOrder::address;
  Fixture f(settings);
  f.mute_store = true;
  f.join_all({"a", "b", "c"});
  f.mute_store = false;
  f.lose("a");
  f.pass(31s);
  EXPECT_EQ(f.rank("b"), 0);
  EXPECT_EQ(f.rank("c"), 1);
}

TEST(Coordinator, ReportsComeTogetherTheFirstFailuresFirst) {
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

TEST(Coordinator, ReportsThatDoNotComeAreLeftOut) {
  Fixture f(nodes(3, 3));
  f.join_all({"a", "b", "c"});
  f.say("b", Failed{0, true, "x"});
  f.say("a", TellReport{10'000, {"a", 0, "A"}});
  f.pass(7900ms);
  EXPECT_EQ(f.agents["a"].last<Reports>(), nullptr);
  f.pass(200ms);
  ASSERT_NE(f.agents["a"].last<Reports>(), nullptr);
  EXPECT_EQ(f.agents["a"].last<Reports>()->reports.size(), 1U);
}

TEST(Coordinator, FramesOutOfPlaceDoNoHarm) {
  Fixture f(nodes(2, 2));
  f.join("a");
  f.say("a", Finish{0});
  f.say("a", Failed{0, true, "x"});
  f.say("a", TellReport{1000, {"a", 0, "A"}});
  f.say("a", StoreOffer{0, "a", 1, ""});
  EXPECT_TRUE(f.last_taken);
  f.say("a", Ended{});
  EXPECT_FALSE(f.last_taken);
  EXPECT_EQ(f.last_taken.error().message, "a 'ended' frame, which agents do not send");
  f.join("b");
  EXPECT_EQ(f.rank("b"), 1);
}

TEST(Coordinator, NamesWhoIsMissingWhereTheNamesAreKnown) {
  auto settings = nodes(3, 3);
  settings.expected = {"a", "b", "c.cluster"};
  Fixture f(settings);
  f.join("a.domain");
  f.pass(1100ms);
  EXPECT_EQ(f.agents["a.domain"].status,
            "1 of 3 nodes have joined (a.domain), 2 missing (b, c.cluster)");
  f.join("c");
  f.pass(1100ms);
  EXPECT_EQ(f.agents["c"].status, "2 of 3 nodes have joined (a.domain, c), 1 missing (b)");
}

// The scheduler's names need not be the machines' own.
TEST(Coordinator, NamesNobodyWhereTheNamesDoNotFit) {
  auto settings = nodes(2, 2);
  settings.expected = {"n1", "n2"};
  Fixture f(settings);
  f.join("a");
  f.pass(1100ms);
  EXPECT_EQ(f.agents["a"].status, "1 of 2 nodes have joined (a), 1 missing");
}

}  // namespace
}  // namespace lockstep::rendezvous::hub
