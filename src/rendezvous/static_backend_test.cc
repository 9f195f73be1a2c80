// Agents of the static backend on one loop, over real sockets, with short periods.
#include "rendezvous/static_backend.h"

#include "io/listen.h"

#include <gtest/gtest.h>

#include <deque>

namespace lockstep::rendezvous {
namespace {
using namespace std::chrono_literals;

struct Agent {
  std::unique_ptr<StaticBackend> backend;
  std::optional<Result<void>> opened;
  std::optional<Result<std::optional<Round>>> joined;
  std::optional<Result<void>> left;
  std::optional<Interruption> interrupted;
};

class StaticBackendTest : public ::testing::Test {
 protected:
  StaticBackendTest() : port(io::open_listener("127.0.0.1", 0, 1).value().port) {}
  Agent& open(int node_rank) {
    StaticSettings settings;
    settings.master = {"127.0.0.1", port};
    settings.run_id = "job";
    settings.node_rank = node_rank;
    settings.nodes = 2;
    settings.heartbeat_interval = 50ms;
    settings.close_timeout = 2s;
    settings.offer.host = "n" + std::to_string(node_rank);
    Agent& agent = agents.emplace_back();
    agent.backend = std::make_unique<StaticBackend>(loop, settings);
    agent.backend->on_interruption([&](const Interruption& what) { agent.interrupted = what; });
    agent.backend->open([&](Result<void> done) { agent.opened = std::move(done); });
    return agent;
  }
  void join(Agent& agent) {
    agent.joined.reset();
    agent.interrupted.reset();
    agent.backend->join([&](auto result) { agent.joined = std::move(result); });
  }
  // Both in the first round.
  void meet(Agent& a, Agent& b) {
    until([&] { return a.opened && b.opened; });
    join(a);
    join(b);
    until([&] { return a.joined && b.joined; });
    ASSERT_TRUE(*a.joined) << a.joined->error().message;
    ASSERT_TRUE(*b.joined) << b.joined->error().message;
  }
  void leave(Agent& agent, Departure how) {
    agent.backend->leave(how, [&](Result<void> done) { agent.left = std::move(done); });
  }
  template <class Fact>
  void until(Fact fact) {
    const auto limit = io::Clock::now() + 10s;
    while (!fact() && io::Clock::now() < limit)
      loop.run_once();
    ASSERT_TRUE(fact());
  }

  io::Loop loop;
  int port;
  std::deque<Agent> agents;
};

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
  EXPECT_EQ(a.joined->error().message, "node 1 is gone (no heartbeat for 0 s)");
}

TEST_F(StaticBackendTest, ANodeThatLeavesBetweenTwoRoundsIsMissedAtOnce) {
  Agent& a = open(0);
  Agent& b = open(1);
  meet(a, b);
  a.backend->tell_failure("rank 0 failed", false);
  until([&] { return b.interrupted.has_value(); });
  join(a);
  leave(b, Departure::stopped);
  until([&] { return a.joined.has_value(); });
  ASSERT_FALSE(*a.joined);
  EXPECT_EQ(a.joined->error().message, "node 1 has left");
}

TEST_F(StaticBackendTest, AHostThatGoesBetweenTwoRoundsIsMissedAtOnce) {
  Agent& a = open(0);
  Agent& b = open(1);
  meet(a, b);
  b.backend->finish([](const Result<void>&) {});
  a.backend->tell_failure("rank 0 failed", false);
  until([&] { return b.interrupted.has_value(); });
  join(b);  // whose wait in the barrier is still under way
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

}  // namespace
}  // namespace lockstep::rendezvous
