// Membership and order of rounds, and the effect of failures and losses.
#include "coordinator_testing.h"

namespace lockstep::rendezvous::hub {
namespace {
using testing::nodes;
using namespace std::chrono_literals;
using Fixture = testing::CoordinatorFixture;

TEST(Coordinator, AFixedNumberOfNodesMeetsAtOnceInFourMessages) {
  Fixture f(nodes(3, 3));
  f.join_all({"b", "c", "a"});
  EXPECT_EQ(f.rank("a"), 0);  // the host gets rank 0 although it came last
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

TEST(Coordinator, NewsGoFromTheFirstNodeToAllAndFromAnyNodeToTheFirst) {
  Fixture f(nodes(3, 4));
  f.join_all({"a", "b", "c"});
  f.pass(31s);
  f.join("d");  // the round is full of three by now; d asks for another one
  f.join_all({"a", "b", "c"});
  const auto round = f.agents["a"].round()->number;
  f.say("b", News{round, 77, "from b"});
  EXPECT_EQ(*f.agents["a"].last<News>(), (News{round, 1, "from b"}));
  EXPECT_EQ(f.agents["c"].last<News>(), nullptr);
  f.say("a", News{round, 77, "from a"});
  for (const char* name : {"b", "c", "d"})
    EXPECT_EQ(*f.agents[name].last<News>(), (News{round, 0, "from a"})) << name;
  EXPECT_EQ(f.agents["a"].last<News>()->text, "from b");
  f.say("c", News{round - 1, 0, "old"});
  EXPECT_EQ(f.agents["a"].last<News>()->text, "from b");
}

TEST(Coordinator, NewsOfNodesWithoutAPlaceAreDropped) {
  Fixture f(nodes(2, 2));
  f.arrive("s");
  f.say("s", News{0, 0, "early"});
  f.join_all({"a", "b", "s"});  // s is a spare
  f.say("s", News{f.agents["a"].round()->number, 0, "spare"});
  EXPECT_EQ(f.agents["a"].last<News>(), nullptr);
  EXPECT_TRUE(f.last_taken.has_value());
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

// A host comes back from a power cycle before the hub notices that the old connection is dead.
TEST(Coordinator, TheSameHostGetsItsNodeRankBackOnceItsOldConnectionIsLost) {
  Fixture f(nodes(2, 2));
  f.replacement = true;
  f.arrive("a").offer.node_rank = 0;
  f.arrive("b").offer.node_rank = 1;
  f.join_all({"a", "b"});
  f.arrive("again").offer = f.agents["b"].offer;
  f.join("again");
  f.pass(2s, {"b"});
  EXPECT_EQ(f.refused("again"), "-");
  EXPECT_FALSE(f.agents["again"].closed);
  f.lose("b", "the connection broke");
  f.say("a", f.agents["a"].offer);
  f.pass(2s, {"b"});
  EXPECT_EQ(f.refused("again"), "-");
  EXPECT_EQ(f.rank("again"), 1);
  EXPECT_EQ(f.rank("a"), 0);
}

TEST(Coordinator, ASecondNodeOnTheSameHostHearsThatItsNodeRankIsTaken) {
  Fixture f(nodes(3, 3));
  f.arrive("b").offer.node_rank = 1;
  f.join("b");
  f.arrive("second").offer = f.agents["b"].offer;
  f.join("second");
  EXPECT_EQ(f.refused("second"), "-");
  f.pass(3s);
  EXPECT_EQ(f.refused("second"), "two nodes have --node-rank 1: b (addr-b) and b (addr-b)");
  EXPECT_TRUE(f.agents["second"].closed);
  EXPECT_TRUE(f.agents["b"].got.empty());
}

TEST(Coordinator, DifferentNnodesAreNamed) {
  Fixture f(nodes(2, 4));
  f.arrive("b").offer.max_nodes = 2;
  f.join("b");
  EXPECT_EQ(f.refused("b"),
            "b asks for --nnodes 2, the rendezvous 'job' was opened with --nnodes 2:4");
  f.arrive("c").offer.min_nodes = 3;
  f.join("c");
  EXPECT_EQ(f.refused("c"),
            "c asks for --nnodes 3:4, the rendezvous 'job' was opened with --nnodes 2:4");
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
  EXPECT_EQ(f.told("a"), "end: second");  // a had a larger --max-restarts
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

// The scheduler's names may differ from the machines' own names.
TEST(Coordinator, NamesNobodyWhereTheNamesDoNotFit) {
  auto settings = nodes(2, 2);
  settings.expected = {"n1", "n2"};
  Fixture f(settings);
  f.join("a");
  f.pass(1100ms);
  EXPECT_EQ(f.agents["a"].status, "1 of 2 nodes have joined (a), 1 missing");
}

TEST(Coordinator, ANodeRankIsFreeAgainWhenItsNodeWaitsNoLonger) {
  Fixture f(nodes(3, 3));
  auto& first = f.arrive("b").offer;
  first.node_rank = 1;
  first.join_timeout_ms = 3000;
  f.join("b");
  f.pass(4s);
  ASSERT_NE(f.refused("b"), "-");
  f.arrive("c").offer.node_rank = 1;
  f.join("c");
  EXPECT_EQ(f.refused("c"), "-");
}

TEST(Coordinator, LeadingZerosOfAddressesDoNotCount) {
  auto settings = nodes(2, 2);
  settings.order = RankOrder::address;
  Fixture f(settings);
  f.arrive("a").offer.address = "node10";
  f.arrive("b").offer.address = "node007";
  f.join_all({"a", "b"});
  EXPECT_EQ(f.rank("b"), 0);
}

TEST(Coordinator, WhatIsSaidOfAnEarlierRoundIsIgnored) {
  Fixture f(nodes(2, 2));
  f.join_all({"a", "b"});
  f.say("b", Failed{0, false, "rank 1 on b failed"});
  f.join_all({"a", "b"});
  f.say("b", Failed{0, false, "rank 1 on b failed"});
  EXPECT_EQ(f.told("a"), "-");
  f.say("b", Finish{0});
  f.say("a", Finish{1});
  EXPECT_EQ(f.agents["a"].last<Finished>(), nullptr);
}

TEST(Coordinator, AFinalFailureEndsTheJobAlsoWhileItsRoundIsBeingStopped) {
  Fixture f(nodes(3, 3));
  f.join_all({"a", "b", "c"});
  f.say("c", Failed{0, false, "rank 2 on c failed"});
  f.say("b", Failed{0, true, "rank 1 on b failed"});
  EXPECT_TRUE(f.hub->over());
  f.join("a");
  EXPECT_EQ(f.refused("a"), "the rendezvous 'job' is closed: rank 1 on b failed");
  for (const auto& [name, rank] : std::map<std::string, int>{{"b", 1}, {"c", 2}})
    f.say(name, TellReport{10'000, {name, rank, ""}});
  f.lose("a");
  ASSERT_NE(f.agents["b"].last<Reports>(), nullptr);
  EXPECT_EQ(f.agents["b"].last<Reports>()->reports.front().host, "c");  // failed first
}

TEST(Coordinator, ARoundIsInterruptedOnce) {
  Fixture f(nodes(2, 3));
  f.join_all({"a", "b", "c"});
  f.lose("c");
  const std::string told = f.told("a");
  f.lose("b");  // a still stops its workers, and hears of the job's end when it joins
  EXPECT_EQ(f.told("a"), told);
}

TEST(Coordinator, OnlyRankZerosStoreOfTheRoundThatIsOfferedCounts) {
  Fixture f(nodes(2, 2));
  f.mute_store = true;
  f.join_all({"a", "b"});
  f.lose("b");
  f.join_all({"b"});
  f.arrive("b");
  f.join("b");
  f.say("a", StoreOffer{0, "addr-a", 7000, ""});
  EXPECT_EQ(f.agents["b"].round(), nullptr);
  f.say("b", StoreOffer{1, "addr-b", 7000, ""});
  EXPECT_EQ(f.agents["b"].round(), nullptr);
  f.say("a", StoreOffer{1, "addr-a", 7000, ""});
  ASSERT_NE(f.agents["b"].round(), nullptr);
  EXPECT_EQ(f.agents["b"].round()->master_addr, "addr-a");
}

TEST(Coordinator, AStoreWithoutAnAddressIsNone) {
  Fixture f(nodes(2, 2));
  f.arrive("a").offer.address = "";
  f.join_all({"a", "b"});
  EXPECT_EQ(f.refused("b"), "a is rank 0 and could not open the workers' store: it has no address");
}

TEST(Coordinator, RankZeroThatSaysNothingOfItsStoreIsReplaced) {
  auto settings = nodes(2, 3);
  settings.order = RankOrder::address;
  Fixture f(settings);
  f.mute_store = true;
  f.arrive("b").offer.join_timeout_ms = 3000;
  f.join_all({"b", "a", "c"});
  f.pass(29s);
  EXPECT_EQ(f.refused("b"), "-") << "a round is on offer";
  EXPECT_FALSE(f.agents["a"].closed);
  f.mute_store = false;
  f.pass(2s);
  EXPECT_TRUE(f.agents["a"].closed);
  EXPECT_EQ(f.hub->peers(), 2U);
}

TEST(Coordinator, TheHostHasAPlaceWhereMoreHaveJoinedThanThereAre) {
  Fixture f(nodes(2, 2));
  f.mute_store = true;
  f.join_all({"b", "c", "d", "a"});
  f.mute_store = false;
  f.lose("b");
  EXPECT_EQ(f.rank("a"), 0);
  EXPECT_EQ(f.rank("c"), 1);
  EXPECT_EQ(f.rank("d"), -1);
}

}  // namespace
}  // namespace lockstep::rendezvous::hub
