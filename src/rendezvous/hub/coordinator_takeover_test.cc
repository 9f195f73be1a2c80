// Takeovers: the state a second coordinator inherits, and how long it waits for survivors. Rounds
// that wait for a permission.
#include "coordinator_testing.h"

namespace lockstep::rendezvous::hub {
namespace {
using Fixture = testing::CoordinatorFixture;
using testing::nodes;
using testing::successor;
using testing::survive;
using namespace std::chrono_literals;

TEST(Coordinator, AnotherCoordinatorGoesOnWithOrderAndCount) {
  auto settings = nodes(2, 3);
  Fixture f(settings);
  for (const auto& [name, rank] : std::map<std::string, int>{{"b", 1}, {"c", 0}, {"a", 2}}) {
    auto& offer = f.arrive(name).offer;
    offer.last_round = 6;
    offer.last_rank = rank;
    offer.restarts = 2;
  }
  f.join_all({"a", "b", "c"});
  EXPECT_EQ(f.rank("c"), 0);
  EXPECT_EQ(f.rank("b"), 1);
  EXPECT_EQ(f.rank("a"), 2);
  EXPECT_EQ(f.agents["a"].round()->number, 7);
  EXPECT_EQ(f.agents["a"].round()->restarts, 2);
}

TEST(CoordinatorTakeover, AllSurvivorsAreEnough) {
  Fixture f(successor(2, 4));
  for (const auto& [name, rank] : std::map<std::string, int>{{"b", 1}, {"c", 2}})
    survive(f, name, rank, 3);
  f.join("b");
  f.pass(3s);
  EXPECT_EQ(f.agents["b"].round(), nullptr);
  f.join("c");
  ASSERT_NE(f.agents["b"].round(), nullptr);
  EXPECT_EQ(f.agents["b"].round()->number, 7);
}

TEST(CoordinatorTakeover, AVoteIsNoNodeThatIsWaitedFor) {
  Fixture f(successor(1, 2));
  survive(f, "b", 1, 2);
  f.hub->count_vote_only(f.arrive("the client").peer, f.now);
  f.join("b");
  ASSERT_NE(f.agents["b"].round(), nullptr);
  EXPECT_EQ(f.hub->peers(), 1U);
  EXPECT_EQ(f.hub->viable(), 1U);
}

TEST(CoordinatorTakeover, OneThatHasComeOverIsWaitedForAndOthersForASecond) {
  Fixture f(successor(2, 4));
  for (const auto& [name, rank] : std::map<std::string, int>{{"b", 1}, {"c", 2}, {"d", 3}})
    survive(f, name, rank, 6);
  f.join_all({"b", "c"});
  f.pass(5s);
  EXPECT_EQ(f.agents["b"].round(), nullptr);  // d still stops its workers
  EXPECT_LE(f.hub->next_time(), f.now + 1s);
  EXPECT_GE(f.hub->next_time(), f.now);  // does not spin
  f.join("d");
  f.pass(900ms);
  EXPECT_EQ(f.agents["b"].round(), nullptr);  // two more nodes may come
  f.pass(300ms);
  EXPECT_EQ(f.rank("d"), 2);
}

TEST(CoordinatorTakeover, WithoutSurvivorsTheLastCallIsAsLongAsEver) {
  Fixture f(successor(2, 4));
  f.join_all({"b", "c"});
  f.pass(20s);
  EXPECT_EQ(f.agents["b"].round(), nullptr);
  survive(f, "d", 1, 6);  // now waits at most one second
  f.join("d");
  f.pass(1200ms);
  EXPECT_NE(f.agents["b"].round(), nullptr);
}

TEST(CoordinatorFence, NothingIsPlacedBeforeItIsPermitted) {
  auto settings = nodes(2, 2);
  settings.fenced = true;
  Fixture f(settings);
  f.join_all({"a", "b"});
  const auto request = f.hub->take_permit_request();
  ASSERT_TRUE(request);
  EXPECT_EQ(request->round, 0);
  EXPECT_EQ(request->restarts, 0);
  EXPECT_FALSE(f.hub->take_permit_request());
  f.pass(40s);  // longer than the timeout of a store
  EXPECT_EQ(f.agents["a"].round(), nullptr);
  EXPECT_FALSE(f.agents["a"].closed);
  f.hub->permit(0, f.now);
  f.deliver();
  EXPECT_EQ(f.rank("b"), 1);
}

TEST(CoordinatorFence, ARestartIsWrittenDownBeforeItsRoundIsMade) {
  auto settings = nodes(2, 2);
  settings.fenced = true;
  Fixture f(settings);
  f.join_all({"a", "b"});
  ASSERT_TRUE(f.hub->take_permit_request());
  f.hub->permit(0, f.now);
  f.deliver();
  f.say("b", Failed{0, false, "x"});
  const auto request = f.hub->take_permit_request();
  ASSERT_TRUE(request);
  EXPECT_EQ(request->round, 0);
  EXPECT_EQ(request->restarts, 1);
  f.hub->permit(0, f.now);
  f.join_all({"a", "b"});
  EXPECT_EQ(f.agents["a"].round(), nullptr);
  const auto next = f.hub->take_permit_request();
  ASSERT_TRUE(next);
  EXPECT_EQ(next->round, 1);
}

TEST(CoordinatorFence, APermissionThatComesTooLateIsForNothing) {
  auto settings = nodes(2, 2);
  settings.fenced = true;
  Fixture f(settings);
  f.join_all({"a", "b"});
  ASSERT_TRUE(f.hub->take_permit_request());
  f.lose("b");
  f.arrive("b");
  f.join("b");
  const auto request = f.hub->take_permit_request();
  ASSERT_TRUE(request);
  EXPECT_EQ(request->round, 1);
  f.hub->permit(0, f.now);
  f.deliver();
  EXPECT_EQ(f.agents["a"].round(), nullptr);
  f.hub->permit(1, f.now);
  f.deliver();
  EXPECT_EQ(f.agents["a"].round()->number, 1);
}

TEST(CoordinatorFence, APermissionWithoutAStoreIsForNothing) {
  auto settings = nodes(2, 2);
  settings.fenced = true;
  Fixture f(settings);
  f.mute_store = true;
  f.join_all({"a", "b"});
  f.hub->permit(0, f.now);
  f.deliver();
  EXPECT_EQ(f.agents["b"].round(), nullptr);
}

}  // namespace
}  // namespace lockstep::rendezvous::hub
