// Rounds of the c10d backend: who takes part, failures, barrier, reports, goodbyes.
#include "rendezvous/dynamic/dynamic_backend_testing.h"
#include "rendezvous/dynamic/state_codec.h"

#include <gtest/gtest.h>

namespace lockstep::rendezvous::dynamic {
namespace {
using namespace std::chrono_literals;
using namespace testing;  // NOLINT

TEST_F(DynamicBackendTest, TwoMeetAThirdWaitsAndTheNextRoundHasThemAll) {
  settings.dynamic.max_nodes = 3;
  settings.offer.local_world_size = 2;
  Agent& b = open("b");
  Agent& a = open("a");
  ASSERT_TRUE(*b.opened) << b.opened->error().message;
  ASSERT_TRUE(*a.opened) << a.opened->error().message;
  EXPECT_TRUE(b.place->hosts());
  EXPECT_FALSE(a.place->hosts());
  join_all({&b, &a});
  EXPECT_EQ(round(a).group_rank, 0);
  EXPECT_EQ(round(b).group_rank, 1);
  EXPECT_EQ(round(b).base_rank, 2);
  EXPECT_EQ(round(b).world_size, 4);
  EXPECT_EQ(round(b).master_addr, "a");
  EXPECT_EQ(round(b).master_port, 4711);
  Agent& c = open("c");
  join(c);
  until([&] { return a.interrupted && b.interrupted; });
  EXPECT_EQ(a.interrupted->kind, Interruption::Kind::rejoin);
  EXPECT_EQ(a.interrupted->why, "1 node waits to join");
  join(a);
  join(b);
  until([&] { return a.joined && b.joined && c.joined; });
  EXPECT_EQ(round(c).number, 1);
  EXPECT_EQ(round(c).group_rank, 2);
  EXPECT_EQ(round(c).restarts, 0);
}

// A node that looked a second later would see its workers fail over the end of the others.
TEST_F(DynamicBackendTest, AllNodesHearOfAWaitingNodeFromTheFirstThatSeesIt) {
  settings.dynamic.max_nodes = 3;
  settings.dynamic.keep_alive_interval = 60s;
  Agent& a = open("a");
  settings.dynamic.poll_interval = 60s;
  Agent& b = open("b");
  join_all({&a, &b});
  Agent& c = open("c");
  join(c);
  until([&] { return b.interrupted.has_value(); });
  EXPECT_EQ(b.interrupted->kind, Interruption::Kind::rejoin);
  EXPECT_EQ(b.interrupted->why, "1 node waits to join");
}

// If each of the nodes wrote for itself, nearly all writes would lose.
TEST_F(DynamicBackendTest, ManyDoNotGetInOneAnothersWay) {
#if defined(__SANITIZE_ADDRESS__) || defined(__clang__)  // clang: the sanitizer build
  constexpr std::size_t kMany = 20;  // reading the state takes ten times as long
#else
  constexpr std::size_t kMany = 60;
#endif
  settings.dynamic.min_nodes = settings.dynamic.max_nodes = kMany;
  settings.dynamic.poll_interval = 1s;
  settings.dynamic.keep_alive_interval = 60s;
  for (std::size_t i = 0; i < kMany; ++i)
    open("n" + std::to_string(i));
  const auto requests = [&] { return agents.front().place->server()->stats().requests_total; };
  const auto before = requests();
  for (Agent& agent : agents)
    join(agent);
  until([&] {
    return std::all_of(agents.begin(), agents.end(),
                       [](const Agent& agent) { return agent.joined.has_value(); });
  });
  EXPECT_LT(requests() - before, 50 * kMany) << "some 24 a node";
  std::optional<RendezvousState> state;
  agents.front().place->state().read([&](const Result<StateStore::Stored>& stored) {
    state = decode_state(stored.value().text).value();
  });
  until([&] { return state.has_value(); });
  EXPECT_GT(state->settled, static_cast<std::int64_t>(kMany / 4)) << "most came in by the queue";
}

TEST_F(DynamicBackendTest, AFailureIsToldAtOnceAndCountedOnce) {
  settings.dynamic.poll_interval = 10s;  // the test must not depend on polling
  settings.dynamic.keep_alive_interval = 60s;
  Agent& a = open("a");
  Agent& b = open("b");
  join_all({&a, &b});
  const auto start = io::Clock::now();
  b.backend->tell_failure("rank 1 on b failed (exitcode: 3)", false);
  until([&] { return a.interrupted.has_value(); });
  EXPECT_EQ(a.interrupted->kind, Interruption::Kind::rejoin);
  EXPECT_EQ(a.interrupted->why, "rank 1 on b failed (exitcode: 3)");
  join_all({&b, &a});
  EXPECT_LT(io::Clock::now() - start, 5s);
  EXPECT_EQ(round(a).number, 1);
  EXPECT_EQ(round(a).restarts, 1);
  EXPECT_EQ(round(b).restarts, 1);
  a.backend->tell_failure("both at", false);
  b.backend->tell_failure("the same time", false);
  join_all({&b, &a});
  EXPECT_EQ(round(a).restarts, 2);
  EXPECT_EQ(round(b).restarts, 2);
}

TEST_F(DynamicBackendTest, TheLastFailureEndsAllAndEveryNodeHasAllReports) {
  Agent& a = open("a");
  Agent& b = open("b");
  join_all({&a, &b});
  b.backend->tell_failure("rank 1 on b failed", true);
  until([&] { return a.interrupted.has_value(); });
  EXPECT_EQ(a.interrupted->kind, Interruption::Kind::end);
  for (Agent* agent : {&a, &b})
    agent->backend->exchange_reports(
        {agent == &a ? "a" : "b", agent == &a ? 0 : 1, "[]"}, 5s,
        [agent](auto reports) { agent->reports = std::move(reports); });
  until([&] { return a.reports && b.reports; });
  ASSERT_EQ(a.reports->size(), 2U);
  EXPECT_EQ(a.reports->front().host, "b") << "who failed first comes first";
  EXPECT_EQ(b.reports->front().host, "b");
  for (Agent* agent : {&a, &b})
    agent->backend->leave(Departure::failed,
                          [agent](const Result<void>& left) { agent->left = left; });
  until([&] { return b.left.has_value(); });
  EXPECT_FALSE(a.left) << "the host stays while a guest is there";
  b.backend.reset();
  until([&] { return a.left.has_value(); });
}

TEST_F(DynamicBackendTest, HeartbeatsGoOnInTheBarrier) {
  Agent& a = open("a");
  Agent& b = open("b");
  join_all({&a, &b});
  a.backend->finish([&](const Result<void>& all) { a.finished = all; });
  const auto start = io::Clock::now();
  until([&] { return io::Clock::now() > start + 400ms; });
  EXPECT_FALSE(b.interrupted);
  EXPECT_FALSE(a.finished);
  b.backend->finish([&](const Result<void>& all) { b.finished = all; });
  until([&] { return a.finished && b.finished; });
  EXPECT_TRUE(*a.finished);
  EXPECT_FALSE(a.interrupted);
}

TEST_F(DynamicBackendTest, AFailureElsewhereReachesTheBarrier) {
  Agent& a = open("a");
  Agent& b = open("b");
  join_all({&a, &b});
  a.backend->finish([&](const Result<void>& all) { a.finished = all; });
  b.backend->tell_failure("rank 1 on b failed", false);
  until([&] { return a.interrupted.has_value(); });
  join_all({&a, &b});
  EXPECT_FALSE(a.finished);
  EXPECT_EQ(round(a).number, 1);
}

TEST_F(DynamicBackendTest, JoinTimesOut) {
  settings.dynamic.join_timeout = 1s;
  Agent& a = open("a");
  join(a);
  until([&] { return a.joined.has_value(); });
  EXPECT_EQ(a.joined->error().code, Errc::timeout);
  EXPECT_EQ(a.joined->error().message,
            "joining timed out: 1 of at least 2 nodes had joined the rendezvous 'job'");
}

TEST_F(DynamicBackendTest, WhoIsStoppedWaitsForNobody) {
  Agent& a = open("a");
  join(a);
  a.backend->leave(Departure::stopped, [&](const Result<void>& left) { a.left = left; });
  until([&] { return a.left.has_value(); });
  EXPECT_TRUE(*a.left);
  EXPECT_EQ(a.joined->error().code, Errc::canceled);
  Agent& b = open("b");
  Agent& c = open("c");
  join_all({&b, &c});
  EXPECT_EQ(round(b).group_world_size, 2);
}

TEST_F(DynamicBackendTest, WhoIsStoppedSaysSo) {
  settings.dynamic.keep_alive_interval = 60s;
  for (const std::size_t min : {1, 2}) {
    agents.clear();
    settings.dynamic.min_nodes = min;
    Agent& a = open("a");
    Agent& b = open("b");
    join_all({&a, &b});
    EXPECT_FALSE(a.backend->others_can_go_on()) << "a hosts the store";
    EXPECT_EQ(b.backend->others_can_go_on(), min == 1);
    b.backend->leave(Departure::stopped, [&](const Result<void>& left) { b.left = left; });
    until([&] { return a.interrupted && b.left; });
    EXPECT_EQ(a.interrupted->kind, min == 1 ? Interruption::Kind::rejoin : Interruption::Kind::end);
    EXPECT_EQ(a.interrupted->why, "b has left: it was told to stop");
    const auto start = io::Clock::now();
    a.backend->exchange_reports({"a", 0, "[]"}, 5s,
                                [&](auto reports) { a.reports = std::move(reports); });
    until([&] { return a.reports.has_value(); });
    EXPECT_LT(io::Clock::now() - start, 2s) << "nothing is to come from b";
  }
}

TEST_F(DynamicBackendTest, WhoCannotBeginTheRoundSaysSo) {
  Agent& a = open("a");
  Agent& b = open("b");
  join_all({&a, &b});
  b.backend->leave(Departure::failed, [&](Result<void> done) { b.left = std::move(done); });
  until([&] { return a.interrupted.has_value(); });
  EXPECT_EQ(a.interrupted->kind, Interruption::Kind::end);
  EXPECT_EQ(a.interrupted->why, "b has left: it could not start its workers");
}

// Node b is cut off until the other node has formed a round without b.
TEST_F(DynamicBackendTest, WhoWasGivenUpFailsAlone) {
  settings.dynamic.min_nodes = 1;
  Agent& a = open("a");
  settings.dynamic.keep_alive_interval = 60s;
  Agent& b = open("b");
  join_all({&a, &b});
  until([&] { return a.interrupted.has_value(); });
  join_all({&a});
  EXPECT_EQ(round(a).group_world_size, 1);
  b.backend->leave(Departure::failed, [&](const Result<void>& left) { b.left = left; });
  until([&] { return b.left.has_value(); });
  EXPECT_TRUE(*b.left);
  EXPECT_FALSE(a.interrupted);
  Agent& c = open("c");
  join(c);
  until([&] { return a.interrupted.has_value(); });
  join(a);
  until([&] { return a.joined && c.joined; });
  EXPECT_EQ(round(c).group_world_size, 2);
}

TEST_F(DynamicBackendTest, WhoGetsNoAnswerWhileJoiningClosesNothing) {
  settings.dynamic.min_nodes = 1;
  Agent& a = open("a");
  Agent& b = open("b");
  join_all({&a, &b});
  b.place->silent = true;
  join(b);
  until([&] { return b.joined.has_value(); });
  EXPECT_EQ(b.joined->error().code, Errc::timeout);
  b.place->silent = false;
  b.backend->leave(Departure::failed, [&](const Result<void>& left) { b.left = left; });
  until([&] { return a.interrupted && b.left; });
  EXPECT_TRUE(*b.left);
  EXPECT_EQ(a.interrupted->kind, Interruption::Kind::rejoin);
  join_all({&a});
  EXPECT_EQ(round(a).group_world_size, 1);
}

TEST_F(DynamicBackendTest, NamesOfNodesCannotSteerTheTerminal) {
  Agent& a = open("a\x1b[2J\n");
  join(a);
  const std::string shown = "a\\x1b[2J\\x0a";
  until([&] { return a.backend->waiting_for().find(shown) != std::string::npos; });
  EXPECT_EQ(a.backend->waiting_for().find('\x1b'), std::string::npos);
}

TEST_F(DynamicBackendTest, ReportsDoNotQueueBehindTheBarrier) {
  Agent& a = open("a");
  Agent& b = open("b");
  join_all({&a, &b});
  a.backend->finish([&](const Result<void>& all) { a.finished = all; });
  b.backend->tell_failure("rank 1 on b failed", true);
  until([&] { return a.interrupted.has_value(); });
  const auto start = io::Clock::now();
  for (Agent* agent : {&a, &b})
    agent->backend->exchange_reports({"x", agent == &a ? 0 : 1, "[]"}, 10s, [agent](auto reports) {
      agent->reports = std::move(reports);
    });
  until([&] { return a.reports && b.reports; });
  EXPECT_LT(io::Clock::now() - start, 5s);
  EXPECT_EQ(a.reports->size(), 2U);
}

TEST_F(DynamicBackendTest, WhoTiresOfTheBarrierIsNotMissed) {
  settings.exit_barrier_timeout = 1s;
  Agent& b = open("b");
  Agent& a = open("a");
  join_all({&a, &b});
  a.backend->finish([&](const Result<void>& all) { a.finished = all; });
  until([&] { return a.finished.has_value(); });
  EXPECT_FALSE(*a.finished);
  a.backend->leave(Departure::succeeded, [&](const Result<void>& left) { a.left = left; });
  until([&] { return a.left.has_value(); });
  a.backend.reset();
  const auto start = io::Clock::now();
  until([&] { return io::Clock::now() > start + 400ms; });
  EXPECT_FALSE(b.interrupted);
}

// A torchrun agent closes the rendezvous after its last failure.
TEST_F(DynamicBackendTest, WhoeverClosesDoesNotComeToTheBarrier) {
  Agent& a = open("a");
  Agent& b = open("b");
  join_all({&a, &b});
  a.backend->finish([&](const Result<void>& all) { a.finished = all; });
  b.backend->leave(Departure::succeeded, [&](const Result<void>& left) { b.left = left; });
  until([&] { return a.finished.has_value(); });
  EXPECT_FALSE(*a.finished);
  EXPECT_FALSE(a.interrupted);
}

TEST_F(DynamicBackendTest, ClosedIsFinalAndSparesEndWell) {
  settings.dynamic.min_nodes = 1;
  settings.dynamic.max_nodes = 1;
  settings.dynamic.keep_alive_interval = 60s;  // evict no node while the machine is busy
  Agent& a = open("a");
  join_all({&a});
  Agent& spare = open("spare");
  join(spare);
  until([&] { return spare.backend->waiting_for().find("is a spare") != std::string::npos; });
  a.backend->leave(Departure::succeeded, [&](const Result<void>& left) { a.left = left; });
  until([&] { return spare.joined.has_value(); });
  EXPECT_FALSE(spare.joined->value());
  Agent& late = open("late");
  join(late);
  until([&] { return late.joined.has_value(); });
  EXPECT_EQ(late.joined->error().code, Errc::canceled);
  EXPECT_FALSE(a.left) << "the host stays while guests are there";
  spare.backend.reset();
  late.backend.reset();
  until([&] { return a.left.has_value(); });
}

TEST_F(DynamicBackendTest, ACorruptStateIsNeverOverwritten) {
  Agent& a = open("a");
  a.place->server()->set("/torch.rendezvous.job", "bm9uc2Vuc2U=");
  join(a);
  until([&] { return a.joined.has_value(); });
  EXPECT_EQ(a.joined->error().code, Errc::corrupt);
  EXPECT_EQ(a.place->server()->engine().get("/torch.rendezvous.job"), "bm9uc2Vuc2U=");
}

TEST_F(DynamicBackendTest, NobodyHosts) {
  is_host = false;
  settings.read_timeout = 100ms;
  Agent& a = open("a");
  ASSERT_FALSE(*a.opened);
  EXPECT_NE(a.opened->error().message.find("Connection refused"), std::string::npos);
}

TEST_F(DynamicBackendTest, ATakenPortIsFinalForADeclaredHost) {
  Agent& a = open("a");
  is_host = true;
  Agent& b = open("b");
  EXPECT_TRUE(*a.opened);
  ASSERT_FALSE(*b.opened);
  EXPECT_EQ(b.opened->error().code, Errc::already_exists);
}

}  // namespace
}  // namespace lockstep::rendezvous::dynamic
