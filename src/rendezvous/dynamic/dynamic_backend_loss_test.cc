// Nodes and hosts of the c10d backend that vanish without a word.
#include "rendezvous/dynamic/dynamic_backend_testing.h"
#include "rendezvous/dynamic/state_codec.h"

#include <gtest/gtest.h>

namespace lockstep::rendezvous::dynamic {
namespace {
using namespace std::chrono_literals;
using namespace testing;  // NOLINT

TEST_F(DynamicBackendTest, ANodeThatIsGoneEndsOrReformsTheRound) {
  settings.dynamic.min_nodes = 1;
  Agent& a = open("a");
  Agent& b = open("b");
  join_all({&a, &b});
  b.backend.reset();
  until([&] { return a.interrupted.has_value(); });
  EXPECT_EQ(a.interrupted->kind, Interruption::Kind::rejoin);
  EXPECT_EQ(a.interrupted->why, "b is gone (connection closed)");
  join_all({&a});
  EXPECT_EQ(round(a).group_world_size, 1);
  EXPECT_EQ(round(a).restarts, 0);
}

// The 60 s heartbeat makes sure that the closed connection is what the host notices.
TEST_F(DynamicBackendTest, TheHostSeesThatAGuestIsGone) {
  settings.dynamic.max_nodes = 3;
  settings.dynamic.last_call_timeout = 1s;  // all three are in the first round
  settings.dynamic.keep_alive_interval = 60s;
  Agent& a = open("a");
  Agent& b = open("b");
  Agent& c = open("c");
  join_all({&a, &b, &c});
  b.backend.reset();
  until([&] { return a.interrupted && c.interrupted; });
  for (const Agent* agent : {&a, &c}) {
    EXPECT_EQ(agent->interrupted->kind, Interruption::Kind::rejoin);
    EXPECT_EQ(agent->interrupted->why, "b is gone (connection closed)");
  }
  join_all({&a, &c});
  EXPECT_EQ(round(c).group_world_size, 2);
  EXPECT_EQ(round(c).restarts, 0);
  Agent& again = open("b");  // like a restarted container: same address, same numbers
  join(again);
  until([&] { return a.interrupted && c.interrupted; });
  join(a);
  join(c);
  until([&] { return a.joined && c.joined && again.joined; });
  EXPECT_EQ(round(again).group_world_size, 3);
}

// The goodbye arrives before the connection closes.
TEST_F(DynamicBackendTest, AGuestThatLeavesInGoodOrderIsNotMissed) {
  settings.dynamic.min_nodes = 1;
  settings.exit_barrier_timeout = 0s;
  Agent& a = open("a");
  Agent& b = open("b");
  join_all({&a, &b});
  const auto looks = [&] { return a.place->server()->stats().requests_total; };
  b.backend->finish([](const Result<void>&) {});
  b.backend->leave(Departure::succeeded, [&](const Result<void>& left) { b.left = left; });
  until([&] { return b.left.has_value(); });
  b.backend.reset();
  const auto before = looks();
  until([&] { return looks() > before + 4; });
  EXPECT_FALSE(a.interrupted) << a.interrupted->why;
}

// Without the record of the lost node, a node that looks later sees only a node waiting to join.
TEST_F(DynamicBackendTest, EveryNodeHearsWhichOneIsGone) {
  settings.dynamic.max_nodes = 3;
  settings.dynamic.last_call_timeout = 1s;
  settings.dynamic.keep_alive_interval = 200ms;
  Agent& a = open("a");
  Agent& b = open("b");
  settings.dynamic.poll_interval = 250ms;
  Agent& c = open("c");
  join_all({&a, &b, &c});
  b.backend.reset();
  until([&] { return a.interrupted.has_value(); });
  EXPECT_EQ(a.interrupted->why, "b is gone (connection closed)");
  join(a);
  until([&] { return c.interrupted.has_value(); });
  EXPECT_EQ(c.interrupted->kind, Interruption::Kind::rejoin);
  EXPECT_EQ(c.interrupted->why, "b is gone (connection closed)");
  join(c);
  until([&] { return a.joined && c.joined; });
  EXPECT_EQ(round(c).group_world_size, 2);
  EXPECT_EQ(round(c).restarts, 0);
}

TEST_F(DynamicBackendTest, TooFewAreLeft) {
  Agent& a = open("a");
  Agent& b = open("b");
  join_all({&a, &b});
  b.backend.reset();
  until([&] { return a.interrupted.has_value(); });
  EXPECT_EQ(a.interrupted->kind, Interruption::Kind::end);
  EXPECT_NE(a.interrupted->why.find("1 of at least 2 nodes are left"), std::string::npos);
}

// The survivor is in no list between leaving the old round and joining the next.
TEST_F(DynamicBackendTest, ASurvivorThatJoinsAgainIsNotGone) {
  settings.dynamic.max_nodes = 3;
  settings.dynamic.poll_interval = 300ms;
  settings.dynamic.keep_alive_interval = 60s;
  Agent& a = open("a");
  Agent& b = open("b");
  join_all({&a, &b});
  auto* server = a.place->server();
  for (const auto& key : server->engine().keys_that_start_with("/lockstep/here/", 8))
    server->engine().erase(key);  // make b's closed connection go unnoticed
  b.backend.reset();
  const std::string key = "/torch.rendezvous.job";
  auto state = decode_state(*server->engine().get(key)).value();
  const Node node = state.participants.rbegin()->first;
  ASSERT_EQ(node.addr, "b");
  state.participants.erase(node);
  server->set(key, encode_state(state).value());
  const auto before = server->stats().requests_total;
  until([&] { return server->stats().requests_total > before; });  // a looks
  state.wait_list.insert(node);
  server->set(key, encode_state(state).value());
  until([&] { return a.interrupted.has_value(); });
  EXPECT_EQ(a.interrupted->kind, Interruption::Kind::rejoin) << a.interrupted->why;
}

// Nodes that give up a node first evict it and then record why. A node that wakes from a freeze may
// see the eviction before the alarm rings.
TEST_F(DynamicBackendTest, AnEvictedNodeHearsOfTheFailureAndNotOnlyOfItsEviction) {
  Agent& a = open("a");
  Agent& b = open("b");
  join_all({&a, &b});
  auto* server = a.place->server();
  const std::string key = "/torch.rendezvous.job";
  auto state = decode_state(*server->engine().get(key)).value();
  const Node node = state.participants.rbegin()->first;
  ASSERT_EQ(node.addr, "b");
  state.participants.erase(node);
  state.last_heartbeats.erase(node);
  server->set(key, encode_state(state).value());
  b.place->on_answer = [&] {
    server->set(key + ".0/lockstep/failure",
                encode_failure({.node = 1, .line = "b is gone", .final = true, .gone = true}));
  };
  until([&] { return b.interrupted.has_value(); });
  EXPECT_EQ(b.interrupted->kind, Interruption::Kind::end);
  EXPECT_EQ(b.interrupted->why, "the other nodes gave up this node: b is gone");
}

TEST_F(DynamicBackendTest, ASpareTakesTheLostNodesRank) {
  Agent& a = open("a");
  Agent& b = open("b");
  join_all({&a, &b});
  Agent& c = open("0");  // sorts first by address
  join(c);
  until([&] { return c.backend->waiting_for().find("is a spare") != std::string::npos; });
  b.backend.reset();
  until([&] { return a.interrupted.has_value(); });
  EXPECT_EQ(a.interrupted->kind, Interruption::Kind::rejoin);
  join(a);
  until([&] { return a.joined && c.joined; });
  EXPECT_EQ(round(a).group_rank, 0);
  EXPECT_EQ(round(c).group_rank, 1);
  EXPECT_EQ(round(c).restarts, 0);
}

// The pending join also reports the lost store, not the less telling error of its own request.
TEST_F(DynamicBackendTest, ALostStoreEndsEverything) {
  settings.dynamic.max_nodes = 3;
  settings.dynamic.min_nodes = 3;
  Agent& host = open("a");
  Agent& waiting = open("b");
  join(waiting);
  host.backend.reset();
  until([&] { return waiting.joined.has_value(); });
  EXPECT_EQ(waiting.joined->error().code, Errc::unavailable);
  EXPECT_TRUE(
      waiting.joined->error().message.starts_with("the store at 127.0.0.1:" + std::to_string(port) +
                                                  " is lost: its host is gone or has left ("))
      << waiting.joined->error().message;
}

TEST_F(DynamicBackendTest, AGuestInARoundHearsOfTheLostStore) {
  Agent& host = open("a");
  Agent& guest = open("b");
  join_all({&host, &guest});
  host.backend.reset();
  until([&] { return guest.interrupted.has_value(); });
  EXPECT_EQ(guest.interrupted->kind, Interruption::Kind::end);
  EXPECT_NE(guest.interrupted->why.find("is lost"), std::string::npos);
}

}  // namespace
}  // namespace lockstep::rendezvous::dynamic
