#include "rendezvous/static_backend/static_backend_testing.h"

namespace lockstep::rendezvous::static_backend {
namespace {
using namespace std::chrono_literals;
using namespace testing;  // NOLINT

TEST_F(StaticBackendTest, AFailureIsToldAndCountedOnce) {
  Agent& a = open(0);
  Agent& b = open(1);
  meet(a, b);
  b.backend->tell_failure("rank 1 failed", false);
  until([&] { return a.interrupted.has_value(); });
  EXPECT_EQ(a.interrupted->kind, Interruption::Kind::rejoin);
  meet(a, b);
  EXPECT_EQ((**a.joined)->restarts, 1);
  EXPECT_EQ((**b.joined)->restarts, 1);
  EXPECT_EQ((**b.joined)->number, 1);
}

// The answer to the barrier's count comes after the node has joined again.
TEST_F(StaticBackendTest, AFailureWhileANodeEntersTheBarrierLeadsToANewRound) {
  Agent& a = open(0);
  Agent& b = open(1);
  meet(a, b);
  b.backend->finish([](const Result<void>&) { FAIL() << "the job has not ended"; });
  a.backend->tell_failure("rank 0 failed", false);
  meet(a, b);
  EXPECT_EQ((**b.joined)->number, 1);
}

TEST_F(StaticBackendTest, ANodeThatDiesBetweenTwoRoundsIsMissed) {
  Agent& a = open(0);
  Agent& b = open(1);
  meet(a, b);
  b.backend->tell_failure("rank 1 failed", false);
  until([&] { return a.interrupted.has_value(); });
  b.backend.reset();
  join(a);
  until([&] { return a.joined.has_value(); });
  ASSERT_FALSE(*a.joined);
  EXPECT_EQ(a.joined->error().message, "node 1 (n1) is gone (no heartbeat for 0 s)");
}

TEST_F(StaticBackendTest, ANodeThatLeavesBetweenTwoRoundsIsMissedAtOnce) {
  Agent& a = open(0);
  Agent& b = open(1);
  meet(a, b);
  a.backend->tell_failure("rank 0 failed", false);
  until([&] { return b.interrupted.has_value(); });
  join(a);
  EXPECT_FALSE(b.backend->others_can_go_on()) << "no restart is left for a replacement";
  leave(b, Departure::stopped);
  until([&] { return a.joined.has_value(); });
  ASSERT_FALSE(*a.joined);
  EXPECT_EQ(a.joined->error().message, "node 1 (n1) has left");
}

TEST_F(StaticBackendTest, AHostThatGoesBetweenTwoRoundsIsMissedAtOnce) {
  Agent& a = open(0);
  Agent& b = open(1);
  meet(a, b);
  b.backend->finish([](const Result<void>&) {});
  a.backend->tell_failure("rank 0 failed", false);
  until([&] { return b.interrupted.has_value(); });
  join(b);  // b still waits in the barrier
  a.backend.reset();
  until([&] { return b.joined.has_value(); });
  ASSERT_FALSE(*b.joined);
  EXPECT_NE(b.joined->error().message.find("is lost"), std::string::npos)
      << b.joined->error().message;
}

TEST_F(StaticBackendTest, ANodeThatCannotBeginTheRoundEndsIt) {
  Agent& a = open(0);
  Agent& b = open(1);
  meet(a, b);
  leave(b, Departure::failed);
  until([&] { return a.interrupted.has_value(); });
  EXPECT_EQ(a.interrupted->kind, Interruption::Kind::end);
  EXPECT_EQ(a.interrupted->why, "node 1 (n1) has left: it could not start its workers");
}

TEST_F(StaticBackendTest, AFrozenHostIsMissed) {
  Agent& a = open(0, other_loop);
  Agent& b = open(1);
  meet(a, b);
  frozen = true;
  until([&] { return b.interrupted.has_value(); });
  EXPECT_EQ(b.interrupted->kind, Interruption::Kind::end);
  EXPECT_EQ(b.interrupted->why, "the store of node rank 0 at 127.0.0.1:" + std::to_string(port) +
                                    " is lost: no heartbeat for 0 s");
  leave(b, Departure::failed);
  until([&] { return b.left.has_value(); });
}

TEST_F(StaticBackendTest, AFrozenHostIsMissedInTheBarrierAndBetweenTwoRounds) {
  Agent& a = open(0, other_loop);
  Agent& b = open(1);
  meet(a, b);
  bool done = false;
  b.backend->finish([&](const Result<void>&) { done = true; });
  frozen = true;
  until([&] { return b.interrupted.has_value(); });
  EXPECT_FALSE(done);
  join(b);
  until([&] { return b.joined.has_value(); });
  EXPECT_FALSE(*b.joined);
}

// The frozen guest's workers have ended well, before or during the freeze. The other nodes have
// failed.
TEST_F(StaticBackendTest, AFrozenGuestEndsAsTheOthersDid) {
  for (const bool in_barrier : {false, true}) {
    frozen = false;
    port = io::open_listener("127.0.0.1", 0, 1).value().port;
    Agent& a = open(0);
    Agent& b = open(1, other_loop);
    meet(a, b);
    run_for(4 * settings.heartbeat_interval);  // b listens for failures by now
    bool done = false;
    const auto finish = [&] { b.backend->finish([&](const Result<void>&) { done = true; }); };
    if (in_barrier) finish();
    frozen = true;
    until([&] { return a.interrupted.has_value(); });
    leave(a, Departure::failed);
    until([&] { return a.left.has_value(); });
    a.backend.reset();
    frozen = false;
    if (!in_barrier) finish();
    until([&] { return b.interrupted || done; });
    EXPECT_FALSE(done);
    ASSERT_TRUE(b.interrupted);
    EXPECT_EQ(b.interrupted->kind, Interruption::Kind::end);
  }
}

TEST_F(StaticBackendTest, AFrozenHostEndsAsTheGuestsDid) {
  Agent& a = open(0, other_loop);
  Agent& b = open(1);
  meet(a, b);
  b.backend->finish([](const Result<void>&) {});
  frozen = true;
  until([&] { return b.interrupted.has_value(); });
  leave(b, Departure::failed);
  until([&] { return b.left.has_value(); });
  b.backend.reset();
  frozen = false;
  bool done = false;
  a.backend->finish([&](const Result<void>&) { done = true; });
  until([&] { return a.interrupted || done; });
  EXPECT_FALSE(done);
  ASSERT_TRUE(a.interrupted);
  EXPECT_EQ(a.interrupted->kind, Interruption::Kind::end);
  EXPECT_TRUE(a.interrupted->why.starts_with("node 1 (n1) has given up: the store of node rank 0"))
      << a.interrupted->why;
}

// The host wakes up with the heartbeats of all guests unread.
TEST_F(StaticBackendTest, AHostThatWasFrozenBlamesNobody) {
  settings.heartbeat_interval = 100ms;
  Agent& a = open(0, other_loop);
  Agent& b = open(1);
  meet(a, b);
  frozen = true;
  const auto thaw = io::Clock::now() + 4 * settings.heartbeat_interval;
  until([&] { return io::Clock::now() >= thaw; });
  frozen = false;
  for (int turn = 0; turn < 20; ++turn)
    run_once();
  EXPECT_FALSE(a.interrupted) << a.interrupted->why;
}

TEST_F(StaticBackendTest, ANodeThatIsToldToStopTellsAtOnce) {
  Agent& a = open(0);
  Agent& b = open(1);
  meet(a, b);
  b.backend->tell_stop();
  until([&] { return a.interrupted.has_value(); });
  EXPECT_EQ(a.interrupted->kind, Interruption::Kind::end);
  EXPECT_EQ(a.interrupted->why, "node 1 (n1) has left: it was told to stop");
}

TEST_F(StaticBackendTest, AHostThatIsToldToStopBetweenTwoRoundsTellsAtOnce) {
  Agent& a = open(0);
  Agent& b = open(1);
  meet(a, b);
  a.backend->tell_failure("rank 0 failed", false);
  until([&] { return b.interrupted.has_value(); });
  a.backend->tell_stop();
  join(b);
  until([&] { return b.joined.has_value(); });
  ASSERT_FALSE(*b.joined);
  EXPECT_EQ(b.joined->error().message, "node 0 (n0) has given up: it was told to stop");
}

TEST_F(StaticBackendTest, AHostThatGivesUpSaysWhy) {
  settings.nodes = 3;
  Agent& b = open(1);
  settings.timeout = 200ms;
  Agent& a = open(0);
  until([&] { return b.opened.has_value(); });
  join(b);
  until([&] { return a.opened && b.joined; });
  ASSERT_FALSE(*a.opened);
  ASSERT_FALSE(*b.joined);
  EXPECT_EQ(b.joined->error().message,
            "node 0 (n0) has given up: timed out after 1 seconds waiting for clients. 2/3 clients "
            "joined");
}

// A guest came and went before telling its number of workers.
TEST_F(StaticBackendTest, AHostWhoseJoinFailsSaysWhyAndWaitsForNoGuest) {
  settings.nodes = 3;
  settings.close_timeout = 30s;
  Agent& b = open(1);
  Agent& gone = open(2);
  settings.timeout = 300ms;
  Agent& a = open(0);
  until([&] { return a.opened && b.opened && gone.opened; });
  ASSERT_TRUE(*a.opened);
  gone.backend.reset();
  join(a);
  join(b);
  until([&] { return a.joined && b.joined; });
  ASSERT_FALSE(*a.joined);
  ASSERT_FALSE(*b.joined);
  EXPECT_TRUE(b.joined->error().message.starts_with("node 0 (n0) has given up: agree on ranks"))
      << b.joined->error().message;
  leave(a, Departure::failed);
  until([&] { return a.left.has_value(); });  // within 10 s, although b stays
}

// Otherwise the node would wait for nodes that never come, or the job would begin without it.
TEST_F(StaticBackendTest, ANodeWithAnotherNumberOfNodesIsTurnedAway) {
  Agent& a = open(0);
  settings.nodes = 3;
  Agent& c = open(2);
  until([&] { return c.opened.has_value(); });
  ASSERT_FALSE(*c.opened);
  EXPECT_EQ(c.opened->error().message,
            "node rank 2 (n2) was started with --nnodes 3, node rank 0 at 127.0.0.1:" +
                std::to_string(port) + " with --nnodes 2");
  const std::string told =
      "node rank 2 (n2) was started with --nnodes 3, this node with --nnodes 2: it was turned away";
  until([&] { return a.backend->waiting_for().ends_with(told); });
  EXPECT_TRUE(a.backend->waiting_for().starts_with("1 of 2 nodes have come to"));
  settings.nodes = 2;
  Agent& b = open(1);
  meet(a, b);
}

}  // namespace
}  // namespace lockstep::rendezvous::static_backend
