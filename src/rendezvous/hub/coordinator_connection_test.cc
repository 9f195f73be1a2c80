// Nodes that fall silent, lose their connection or come back on a new one.
#include "coordinator_testing.h"

namespace lockstep::rendezvous::hub {
namespace {
using testing::nodes;
using namespace std::chrono_literals;
using testing::FakeAgent;
using Fixture = testing::CoordinatorFixture;

TEST(CoordinatorConnection, SilenceEvictsAndTheFrozenOneIsToldWhenItWakes) {
  Fixture f(nodes(2, 3));
  f.join_all({"a", "b", "c"});
  f.pass(4900ms, {"b"});
  EXPECT_EQ(f.told("a"), "-");
  f.pass(1100ms, {"b"});
  EXPECT_EQ(f.told("a"), "rejoin: b is gone: no sign of life for 5.0 s");
  EXPECT_EQ(f.told("b"),
            "rejoin: the other nodes took this node for gone: no sign of life for 5.0 s");
  EXPECT_TRUE(f.agents["b"].closed);
  f.join_all({"a", "c"});
  EXPECT_EQ(f.rank("c"), 1);
  f.arrive("b");
  f.join("b");
  f.join_all({"a", "c"});
  EXPECT_EQ(f.rank("b"), 2);
}

// Beats arrive just before or just after the tick, at most one heartbeat apart.
TEST(CoordinatorConnection, BeatsBesideTheTicksAreNoSilence) {
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

// The host slept: the clock went on, and the nodes' frames are still unread.
TEST(CoordinatorConnection, AShortSleepOfTheHostIsNobodysSilenceWithFewBeats) {
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

TEST(CoordinatorConnection, ATimeInWhichTheHostItselfSleptIsNobodysSilence) {
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

TEST(CoordinatorConnection, OneThatGaveUpOnASilentHostIsWaitedFor) {
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
  // The node does not come back:
  f.say("b", Leave{Leave::How::returns});
  f.join("a");
  f.pass(11s);
  EXPECT_EQ(f.refused("a"),
            "b is gone: it lost its connection and did not come back; 1 node is left of at least "
            "2");
}

TEST(CoordinatorConnection, OneThatComesBackMayTakeSeveralConnectionsForIt) {
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

TEST(CoordinatorConnection, ANewConnectionReplacesTheOldOne) {
  Fixture f(nodes(2, 2));
  f.join_all({"a", "b"});
  f.arrive("b");
  EXPECT_EQ(f.told("a"), "rejoin: b came back on a new connection");
  f.join_all({"a", "b"});
  EXPECT_EQ(f.rank("b"), 1);
}

// Otherwise fewer than max nodes would all wait for another last call.
TEST(CoordinatorConnection, ANewConnectionWhileARoundIsOfferedKeepsThePlace) {
  Fixture f(nodes(2, 4));
  f.mute_store = true;
  f.join_all({"a", "b"});
  f.pass(31s);
  const PeerId before = f.agents["b"].peer;
  f.arrive("b");
  EXPECT_TRUE(f.closed.contains(before));
  EXPECT_EQ(f.hub->peers(), 2U);
  EXPECT_EQ(f.agents["a"].got.size(), 1U);  // asks for the store once
  f.say("a", StoreOffer{0, "addr-a", 7000, ""});
  EXPECT_EQ(f.rank("b"), 1);
  f.join("b");  // crosses the Placed frame on the network
  f.hub->lose(before, "the connection was closed", f.now);
  f.deliver();
  EXPECT_EQ(f.rank("a"), 0);
  EXPECT_EQ(f.rank("b"), 1);
  EXPECT_EQ(f.agents["b"].round()->number, 0);
}

TEST(CoordinatorConnection, RankZeroOnANewConnectionIsAskedForTheStoreAgain) {
  Fixture f(nodes(2, 2));
  f.mute_store = true;
  f.join_all({"a", "b"});
  f.mute_store = false;
  f.arrive("a");
  EXPECT_EQ(f.rank("a"), 0);
  EXPECT_EQ(f.rank("b"), 1);
  EXPECT_EQ(f.agents["b"].round()->number, 0);
}

TEST(CoordinatorConnection, ANewNodesSilenceBeginsWithItsConnection) {
  Fixture f(nodes(3, 3));
  f.join("a");
  f.pass(20s);
  FakeAgent& late = f.arrive("b");
  f.now += 1s;
  f.hub->tick(f.now);
  f.deliver();
  EXPECT_FALSE(late.closed);
}

// Rank 0 would open a second store.
TEST(CoordinatorConnection, AStoreThatIsThereIsNotAskedForAgain) {
  auto settings = nodes(2, 2);
  settings.fenced = true;
  Fixture f(settings);
  f.join_all({"a", "b"});
  f.arrive("a");
  EXPECT_TRUE(f.agents["a"].got.empty());
  f.hub->permit(0, f.now);
  f.deliver();
  EXPECT_EQ(f.rank("a"), 0);
}

TEST(CoordinatorConnection, OneThatHasComeBackIsWaitedForNoLongerThanOthers) {
  Fixture f(nodes(2, 2));
  f.join_all({"a", "b"});
  f.say("b", Leave{Leave::How::returns});
  f.join("a");
  f.arrive("b");
  f.join("b");
  ASSERT_EQ(f.rank("b"), 1);
  f.lose("b");
  EXPECT_EQ(f.told("a"), "end: b is gone: the connection was closed; 1 node is left of at least 2");
}

TEST(CoordinatorConnection, OneThatAskedForNoPlaceInTheNextRoundIsNotWaitedFor) {
  Fixture f(nodes(2, 3));
  f.arrive("c").offer.join_timeout_ms = 3000;
  f.join_all({"a", "b", "c"});
  f.say("b", Failed{0, false, "rank 1 on b failed"});
  f.join_all({"a", "c"});
  f.pass(4s);
  ASSERT_NE(f.refused("c"), "-");
  f.say("c", Leave{Leave::How::returns});
  f.join("b");
  EXPECT_EQ(f.agents["b"].round()->group_world_size, 2);
}

}  // namespace
}  // namespace lockstep::rendezvous::hub
