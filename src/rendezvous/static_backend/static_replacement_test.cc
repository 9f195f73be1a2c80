// A static job that loses a node, and the replacement.
#include "rendezvous/static_backend/static_backend_testing.h"

namespace lockstep::rendezvous::static_backend {
namespace {
using namespace std::chrono_literals;
using namespace testing;  // NOLINT

class StaticReplacementTest : public StaticBackendTest {
 protected:
  StaticReplacementTest() { settings.offer.max_restarts = 2; }
  // Kills b without a word, and waits until a has noticed.
  void lose(Agent& a, Agent& b) {
    b.backend.reset();
    until([&] { return a.interrupted.has_value(); });
    EXPECT_EQ(a.interrupted->kind, Interruption::Kind::rejoin);
  }
  void all_join(std::initializer_list<Agent*> nodes) {
    until([&] {
      return std::all_of(nodes.begin(), nodes.end(),
                         [](const Agent* node) { return node->joined.has_value(); });
    });
    for (const Agent* node : nodes)
      ASSERT_TRUE(*node->joined) << node->joined->error().message;
  }
  static const Round& round(const Agent& agent) { return **agent.joined->operator->(); }
};

TEST_F(StaticReplacementTest, ANewNodeTakesTheLostOnesPlaceAndRank) {
  Agent& a = open(0);
  Agent& b = open(1);
  meet(a, b);
  lose(a, b);
  EXPECT_EQ(a.interrupted->why,
            "node 1 (n1) is gone (no heartbeat for 0 s); restart 1 of 2, and up to 900 s for "
            "another node to take its place");
  join(a);
  EXPECT_EQ(a.backend->waiting_for(),
            "the other nodes to join again; a new node may replace a lost one: "
            "node 1 (n1) is gone (no heartbeat for 0 s): start one with --node-rank 1");
  ASSERT_TRUE(a.backend->gives_up_at());
  Agent& c = open(1);
  until([&] { return c.opened.has_value(); });
  ASSERT_TRUE(*c.opened);
  join(c);
  all_join({&a, &c});
  EXPECT_EQ(round(c).group_rank, 1);
  EXPECT_EQ(round(c).number, 1);
  EXPECT_EQ(round(c).restarts, 1);
  EXPECT_EQ(round(a).restarts, 1);
  // A replacement is missed like any other node, and can be replaced, too.
  lose(a, c);
  EXPECT_NE(a.interrupted->why.find("restart 2 of 2"), std::string::npos) << a.interrupted->why;
  Agent& d = open(1);
  until([&] { return d.opened.has_value(); });
  join(a);
  join(d);
  all_join({&a, &d});
  d.backend.reset();
  until([&] { return a.interrupted.has_value(); });
  EXPECT_EQ(a.interrupted->kind, Interruption::Kind::end);
}

TEST_F(StaticReplacementTest, TheOtherGuestsWaitForItToo) {
  settings.nodes = 3;
  Agent& a = open(0);
  Agent& b = open(1);
  Agent& c = open(2);
  until([&] { return a.opened && b.opened && c.opened; });
  for (Agent* node : {&a, &b, &c})
    join(*node);
  all_join({&a, &b, &c});
  b.backend.reset();
  until([&] { return a.interrupted && c.interrupted; });
  EXPECT_EQ(c.interrupted->kind, Interruption::Kind::rejoin);
  EXPECT_EQ(c.interrupted->why, a.interrupted->why);
  join(c);
  join(a);
  until([&] { return c.backend->waiting_for().find("--node-rank 1") != std::string::npos; });
  // Another node vanishes during the wait: both places are free, at no further cost.
  c.backend.reset();
  until([&] { return a.backend->waiting_for().find("--node-rank 2") != std::string::npos; });
  Agent& d = open(2);
  Agent& e = open(1);
  until([&] { return d.opened && e.opened; });
  join(d);
  join(e);
  all_join({&a, &d, &e});
  EXPECT_EQ(round(d).group_rank, 2);
  EXPECT_EQ(round(e).restarts, 1);
}

// The new node comes before the loss is noticed.
TEST_F(StaticReplacementTest, ANewNodeThatComesEarlyWaits) {
  settings.heartbeat_interval = 200ms;
  Agent& a = open(0);
  Agent& b = open(1);
  meet(a, b);
  Agent& c = open(1);
  until([&] { return c.opened.has_value(); });
  join(c);
  until([&] {
    return c.backend->waiting_for().find("replaces that node if it is lost") != std::string::npos;
  });
  EXPECT_FALSE(a.interrupted || b.interrupted);
  lose(a, b);
  join(a);
  all_join({&a, &c});
}

TEST_F(StaticReplacementTest, APlaceIsTakenOnce) {
  Agent& a = open(0);
  Agent& b = open(1);
  meet(a, b);
  lose(a, b);
  Agent& c = open(1);
  settings.timeout = 1s;
  Agent& d = open(1);
  until([&] { return c.opened && d.opened; });
  join(a);
  join(c);
  all_join({&a, &c});
  join(d);
  until([&] { return d.joined.has_value(); });
  ASSERT_FALSE(*d.joined);
  EXPECT_TRUE(d.joined->error().message.ends_with("has a living node with node rank 1"))
      << d.joined->error().message;
  EXPECT_FALSE(a.interrupted || c.interrupted);
  leave(d, Departure::failed);
  until([&] { return d.left.has_value(); });
  EXPECT_FALSE(a.interrupted || c.interrupted) << "it had no place to give up";
}

// The lost node was frozen and wakes up before any replacement has come.
TEST_F(StaticReplacementTest, ALostNodeThatComesBackTakesItsOwnPlace) {
  Agent& a = open(0);
  Agent& b = open(1, other_loop);
  meet(a, b);
  run_for(4 * settings.heartbeat_interval);
  frozen = true;
  until([&] { return a.interrupted.has_value(); });
  join(a);
  frozen = false;
  until([&] { return b.interrupted.has_value(); });
  EXPECT_EQ(b.interrupted->kind, Interruption::Kind::rejoin);
  EXPECT_TRUE(b.interrupted->why.starts_with("the other nodes gave up this node: node 1 (n1)"))
      << b.interrupted->why;
  join(b);
  all_join({&a, &b});
  EXPECT_EQ(round(b).restarts, 1);
}

TEST_F(StaticReplacementTest, ANodeThatIsToldToStopIsReplaced) {
  Agent& a = open(0);
  Agent& b = open(1);
  meet(a, b);
  EXPECT_FALSE(a.backend->others_can_go_on()) << "a hosts the store";
  EXPECT_TRUE(b.backend->others_can_go_on());
  b.backend->tell_stop();
  until([&] { return a.interrupted.has_value(); });
  EXPECT_EQ(a.interrupted->kind, Interruption::Kind::rejoin);
  EXPECT_EQ(a.interrupted->why, "node 1 (n1) has left: it was told to stop");
  leave(b, Departure::stopped);
  until([&] { return b.left.has_value(); });
  Agent& c = open(1);
  until([&] { return c.opened.has_value(); });
  join(a);
  join(c);
  all_join({&a, &c});
  EXPECT_EQ(round(c).restarts, 1);
}

TEST_F(StaticReplacementTest, NobodyComes) {
  settings.timeout = 500ms;
  Agent& a = open(0);
  Agent& b = open(1);
  meet(a, b);
  lose(a, b);
  join(a);
  until([&] { return a.joined.has_value(); });
  ASSERT_FALSE(*a.joined);
  EXPECT_EQ(a.joined->error().message,
            "timed out after 1 s: no other node has taken the place of node 1 (n1)");
}

TEST_F(StaticReplacementTest, NotWithoutReplacement) {
  settings.offer.replacement = false;
  Agent& a = open(0);
  Agent& b = open(1);
  meet(a, b);
  b.backend.reset();
  until([&] { return a.interrupted.has_value(); });
  EXPECT_EQ(a.interrupted->kind, Interruption::Kind::end);
}

TEST_F(StaticReplacementTest, AStrangerIsTurnedAway) {
  settings.offer.launched.name = "train.py";
  Agent& a = open(0);
  Agent& b = open(1);
  meet(a, b);
  lose(a, b);
  join(a);
  settings.offer.launched.name = "eval.py";
  Agent& c = open(1);
  until([&] { return c.opened.has_value(); });
  ASSERT_FALSE(*c.opened);
  EXPECT_NE(c.opened->error().message.find(" launches eval.py, "), std::string::npos)
      << c.opened->error().message;
  settings.nodes = 3;
  Agent& d = open(1);
  until([&] { return d.opened.has_value(); });
  ASSERT_FALSE(*d.opened);
  EXPECT_NE(d.opened->error().message.find("with --nnodes 3"), std::string::npos);
  settings.nodes = 2;
  settings.offer.launched.name = "train.py";
  Agent& e = open(1);
  until([&] { return e.opened.has_value(); });
  join(e);
  all_join({&a, &e});
}

}  // namespace
}  // namespace lockstep::rendezvous::static_backend
