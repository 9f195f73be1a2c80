// Rounds that continue under another coordinator or on a new connection, and the records for the
// next coordinator.
#include "coordinator_testing.h"

namespace lockstep::rendezvous::hub {
namespace {
using Fixture = testing::CoordinatorFixture;
using testing::nodes;
using testing::successor;
using testing::survive;
using namespace std::chrono_literals;

// Adds the node with rank `rank` of round 6, a round of three nodes.
void come_over(Fixture& f, const std::string& name, int rank, Join::Holds holds) {
  survive(f, name, rank, 3);
  Join join = f.agents[name].offer;
  join.holds = holds;
  f.say(name, join);
}
constexpr auto kRunning = Join::Holds::running;
constexpr auto kFinished = Join::Holds::finished;

// Returns the settings of a successor to the coordinator of rank 0's node.
CoordinatorSettings heir(std::vector<int> finished) {
  auto settings = successor(2, 3);
  settings.fenced = true;
  settings.last_lead = 0;
  settings.last_finished = std::move(finished);
  return settings;
}

TEST(CoordinatorHeir, AllHaveFinishedTheOneThatLedAsWell) {
  Fixture f(heir({0}));
  come_over(f, "b", 1, kFinished);
  f.pass(200ms);
  EXPECT_TRUE(f.agents["b"].got.empty());
  come_over(f, "c", 2, kFinished);
  EXPECT_NE(f.agents["b"].last<Finished>(), nullptr);
  EXPECT_NE(f.agents["c"].last<Finished>(), nullptr);
  EXPECT_EQ(f.agents["c"].last<Finished>()->round, 6);
  const auto request = f.hub->take_permit_request();
  ASSERT_TRUE(request);
  EXPECT_EQ(request->end, PermitRequest::End::succeeded);
}

// Finished nodes start again, like after the loss of any unfinished node.
TEST(CoordinatorHeir, TheOneThatLedHadNotFinished) {
  Fixture f(heir({}));
  come_over(f, "b", 1, kFinished);
  EXPECT_TRUE(f.agents["b"].got.empty());
  come_over(f, "c", 2, kFinished);
  EXPECT_EQ(f.told("b"), "rejoin: the node that led the rendezvous is gone");
  f.join_all({"b", "c"});
  f.hub->permit(7, f.now);
  f.deliver();
  EXPECT_EQ(f.rank("b"), 0);
  EXPECT_EQ(f.agents["c"].round()->number, 7);
}

TEST(CoordinatorHeir, TooFewAreLeftOfARoundThatHadNotFinished) {
  auto settings = heir({});
  settings.min_nodes = 3;
  Fixture f(settings);
  come_over(f, "b", 1, kFinished);
  come_over(f, "c", 2, kFinished);
  EXPECT_TRUE(f.told("b").starts_with("end: ")) << f.told("b");
  EXPECT_TRUE(f.told("b").ends_with("2 nodes are left of at least 3")) << f.told("b");
}

// A lost node that had finished is not missed, so no workers are touched.
TEST(CoordinatorHeir, TheOthersWorkersRunOn) {
  Fixture f(heir({0}));
  come_over(f, "b", 1, kFinished);
  come_over(f, "c", 2, kRunning);
  f.pass(20s);
  EXPECT_TRUE(f.agents["b"].got.empty());
  EXPECT_TRUE(f.agents["c"].got.empty());
  f.say("c", Finish{6});
  EXPECT_NE(f.agents["b"].last<Finished>(), nullptr);
}

TEST(CoordinatorHeir, OneThatIsStillOnItsWayIsWaitedForASecond) {
  Fixture f(heir({0}));
  come_over(f, "b", 1, kRunning);
  f.join("spare");
  f.pass(900ms);
  EXPECT_TRUE(f.agents["b"].got.empty());
  f.pass(200ms);
  EXPECT_TRUE(f.told("b").starts_with("rejoin: 1 of 3")) << f.told("b");
}

TEST(CoordinatorHeir, OneThatNobodyCanDoWithoutIsWaitedForLonger) {
  Fixture f(heir({0}));
  come_over(f, "b", 1, kFinished);
  f.pass(9s);
  EXPECT_TRUE(f.agents["b"].got.empty());
  f.pass(1100ms);
  EXPECT_TRUE(f.told("b").starts_with("end: 1 of 3")) << f.told("b");
}

TEST(CoordinatorHeir, OneThatStopsItsWorkersEndsTheRound) {
  Fixture f(heir({0}));
  come_over(f, "b", 1, kFinished);
  survive(f, "c", 2, 3);
  f.join("c");
  EXPECT_EQ(f.told("b"), "rejoin: c asks for a new round");
  f.join("b");
  f.hub->permit(7, f.now);
  f.deliver();
  EXPECT_EQ(f.rank("b"), 0);
  EXPECT_EQ(f.rank("c"), 1);
}

TEST(CoordinatorHeir, AFailureBeforeTheChangeCountsOnce) {
  Fixture f(heir({}));
  come_over(f, "b", 1, kRunning);
  f.say("b", Failed{6, false, "x"});
  EXPECT_EQ(f.hub->take_permit_request()->restarts, 1);
  auto settings = heir({});
  settings.restarts = 1;  // recorded by the first coordinator
  Fixture g(settings);
  come_over(g, "b", 1, kRunning);
  EXPECT_TRUE(g.told("b").starts_with("rejoin: ")) << g.told("b");
  g.say("b", Failed{6, false, "x"});
  come_over(g, "c", 2, kFinished);
  EXPECT_TRUE(g.told("c").starts_with("rejoin: ")) << g.told("c");
  g.join_all({"b", "c"});
  g.hub->permit(7, g.now);
  g.deliver();
  EXPECT_EQ(g.agents["c"].round()->restarts, 1);
}

TEST(CoordinatorHeir, AnotherRoundThanTheLastIsOver) {
  Fixture f(heir({0}));
  survive(f, "b", 1, 3);
  Join join = f.agents["b"].offer;
  join.last_round = 5;
  join.holds = kFinished;
  f.say("b", join);
  EXPECT_TRUE(f.told("b").starts_with("rejoin: ")) << f.told("b");
}

TEST(CoordinatorHeir, TheOneThatLedComesBackAsAGuest) {
  Fixture f(heir({0}));
  come_over(f, "b", 1, kRunning);
  come_over(f, "old", 0, kFinished);
  come_over(f, "c", 2, kRunning);
  f.pass(3s);
  f.say("b", Finish{6});
  f.say("c", Finish{6});
  EXPECT_NE(f.agents["old"].last<Finished>(), nullptr);
}

TEST(CoordinatorHeir, ANewJobCountsItsOwnRestarts) {
  auto settings = heir({});
  settings.restarts = 3;
  Fixture f(settings);
  f.join_all({"x", "y", "z"});
  f.hub->permit(7, f.now);
  f.deliver();
  EXPECT_EQ(f.agents["x"].round()->restarts, 0);
  Fixture g(settings);  // one node of the old job remains
  survive(g, "b", 1, 3);
  g.join_all({"x", "b", "y"});
  g.hub->permit(7, g.now);
  g.deliver();
  EXPECT_EQ(g.agents["b"].round()->restarts, 3);
}

// The claims of nodes and the records in etcd are checked before use.
TEST(CoordinatorHeir, NodesThatCannotBeOfTheRoundAreNotTakenBack) {
  Fixture f(heir({0}));
  survive(f, "x", 1, 4);  // claims more nodes than allowed
  Join join = f.agents["x"].offer;
  join.holds = kRunning;
  f.say("x", join);
  EXPECT_TRUE(f.told("x").starts_with("rejoin: the round is over")) << f.told("x");
  Fixture g(heir({0, 5, -1}));  // the round had three nodes
  come_over(g, "b", 1, kFinished);
  come_over(g, "y", 7, kRunning);
  EXPECT_TRUE(g.told("y").starts_with("rejoin: the round is over")) << g.told("y");
  come_over(g, "z", 1, kRunning);  // b's seat
  EXPECT_TRUE(g.told("z").starts_with("rejoin: the round is over")) << g.told("z");
  come_over(g, "c", 2, kRunning);
  EXPECT_TRUE(g.agents["b"].got.empty());
  g.say("c", Finish{6});
  EXPECT_NE(g.agents["b"].last<Finished>(), nullptr);
}

TEST(CoordinatorHeir, OneThatForgotThatItHadFinishedEndsTheRound) {
  Fixture f(heir({1}));
  come_over(f, "a", 0, kRunning);
  come_over(f, "c", 2, kRunning);
  come_over(f, "b", 1, kRunning);
  EXPECT_EQ(f.told("c"), "rejoin: b does not know what it has finished");
  auto settings = heir({1});
  settings.min_nodes = 1;
  Fixture g(settings);
  come_over(g, "a", 0, kRunning);
  come_over(g, "b", 1, kRunning);  // while other nodes are still coming over
  EXPECT_EQ(g.told("a"), "rejoin: b does not know what it has finished");
}

TEST(CoordinatorHeir, OneThatHasComeOverAndStopsItsWorkersIsWaitedFor) {
  Fixture f(heir({}));
  come_over(f, "b", 1, kFinished);
  survive(f, "c", 2, 3);
  f.join("c");
  survive(f, "old", 0, 3);
  f.join("b");
  EXPECT_FALSE(f.hub->take_permit_request().has_value()) << f.hub->status();
  f.join("old");
  f.hub->permit(7, f.now);
  f.deliver();
  EXPECT_EQ(f.agents["b"].round()->group_world_size, 3);
}

TEST(CoordinatorResume, WhatIsKnownAlreadyChangesNothing) {
  Fixture f(nodes(2, 2));
  f.join_all({"a", "b"});
  Join join = f.agents["b"].offer;
  join.last_round = 0;
  join.last_rank = 1;
  join.last_nodes = 2;
  join.holds = kRunning;
  f.say("b", join);
  EXPECT_EQ(f.told("a") + f.told("b"), "--");
}

// --- records ---

TEST(CoordinatorHeir, TheHostsOwnEndAndOthersThatAreGoneAreWrittenDown) {
  auto settings = nodes(3, 3);
  settings.fenced = true;
  Fixture f(settings);
  f.join_all({"a", "b", "c"});
  EXPECT_EQ(f.hub->take_permit_request()->lead, 0);
  f.hub->permit(0, f.now);
  f.deliver();
  f.say("b", Finish{0});
  EXPECT_FALSE(f.hub->take_permit_request());  // the node itself will say so
  f.say("a", Finish{0});
  auto request = f.hub->take_permit_request();
  ASSERT_TRUE(request);
  EXPECT_EQ(request->finished, std::vector<int>({0}));
  f.lose("b");
  request = f.hub->take_permit_request();
  ASSERT_TRUE(request);
  EXPECT_EQ(request->finished, std::vector<int>({1, 0}));
  EXPECT_EQ(request->lead, 0);
  f.say("c", Failed{0, true, "rank 2 failed"});
  request = f.hub->take_permit_request();
  ASSERT_TRUE(request);
  EXPECT_EQ(request->end, PermitRequest::End::failed);
  EXPECT_EQ(request->why, "rank 2 failed");
}

// After all nodes were stopped, the job may be started again under the same id.
TEST(CoordinatorHeir, MissingNodesAreNoEndForGood) {
  auto settings = nodes(2, 2);
  settings.fenced = true;
  Fixture f(settings);
  f.join_all({"a", "b"});
  ASSERT_TRUE(f.hub->take_permit_request());
  f.hub->permit(0, f.now);
  f.deliver();
  f.say("b", Leave{Leave::How::stopped});
  EXPECT_TRUE(f.told("a").starts_with("end: ")) << f.told("a");
  EXPECT_FALSE(f.hub->take_permit_request());
}

// --- the same coordinator, a new connection ---

TEST(CoordinatorResume, OneThatHasFinishedLosesItsConnectionForAMoment) {
  Fixture f(nodes(2, 2));
  f.join_all({"a", "b"});
  f.say("b", Finish{0});
  f.lose("b");
  f.arrive("b");
  Join join = f.agents["b"].offer;
  join.last_round = 0;
  join.last_rank = 1;
  join.last_nodes = 2;
  join.holds = kFinished;
  f.say("b", join);
  EXPECT_TRUE(f.agents["b"].got.empty());
  f.say("a", Finish{0});
  EXPECT_NE(f.agents["b"].last<Finished>(), nullptr);
  f.lose("b");
  f.arrive("b");
  f.say("b", join);  // the answer was lost with the connection
  EXPECT_NE(f.agents["b"].last<Finished>(), nullptr);
  join.holds = kRunning;  // does not know about its end
  f.say("b", join);
  EXPECT_EQ(f.told("b"), "end: the job has ended well");
}

TEST(CoordinatorResume, OneThatRunsWasGivenUp) {
  Fixture f(nodes(2, 2));
  f.join_all({"a", "b"});
  f.arrive("b");
  EXPECT_TRUE(f.told("a").starts_with("rejoin: b came back")) << f.told("a");
  Join join = f.agents["b"].offer;
  join.last_round = 0;
  join.last_rank = 1;
  join.last_nodes = 2;
  join.holds = kRunning;
  f.say("b", join);
  EXPECT_TRUE(f.told("b").starts_with("rejoin: ")) << f.told("b");
  f.join_all({"a", "b"});
  EXPECT_EQ(f.rank("b"), 1);
  EXPECT_EQ(f.agents["b"].round()->number, 1);
}

}  // namespace
}  // namespace lockstep::rendezvous::hub
