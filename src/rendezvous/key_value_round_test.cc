// The common part of c10d, static and the etcd backends after a round's nodes are known.
#include "rendezvous/key_value_round.h"

#include "rendezvous/key_value_testing.h"

#include <gtest/gtest.h>

#include <deque>

namespace lockstep::rendezvous {
namespace {
using namespace std::chrono_literals;
using Phase = KeyValueRound::Phase;

struct Member {
  explicit Member(FakeStore& store) : keys(store) {}
  FakeKeys keys;
  std::unique_ptr<KeyValueRound> round;
  std::optional<Interruption> interrupted;
  std::optional<Result<std::optional<Round>>> joined;
  std::optional<Result<void>> finished;
  std::optional<FailureRecord> told;
  int joined_again = 0;
};

class KeyValueRoundTest : public ::testing::Test {
 protected:
  Member& member(const std::string& host) {
    Member& made = members.emplace_back(store);
    settings.run_id = "job";
    settings.offer.host = host;
    made.round = std::make_unique<KeyValueRound>(
        loop, settings,
        KeyValueRound::Hooks{
            .interrupted = [&](const Interruption& what) { made.interrupted = what; },
            .join_again = [&](const KeyValueRound::Join&) { ++made.joined_again; },
            .told = [&](const FailureRecord& record) { made.told = record; }});
    return made;
  }
  void agree(Member& node, std::int64_t number, std::size_t rank, std::size_t world = 2) {
    RankExchange exchange{.round = {.round = number,
                                    .rank = rank,
                                    .world = world,
                                    .nodes = {},
                                    .prefix = "r" + std::to_string(number) + "/"},
                          .own = {},
                          .offered = {},
                          .known_store = StorePlace{"10.0.0.1", 4711}};
    node.joined.reset();
    node.interrupted.reset();
    node.finished.reset();
    node.round->agree(
        node.keys, exchange, [&](auto outcome) { node.joined = std::move(outcome); },
        [&, prefix = exchange.round.prefix](const Result<Assignment>& made) {
          ASSERT_TRUE(made) << made.error().message;
          node.round->begin(*made, {.ours = made->ours, .board_prefix = prefix});
        });
  }
  void begin(std::int64_t number = 0) {
    agree(a, number, 0);
    agree(b, number, 1);
    store.run();
    ASSERT_TRUE(a.joined && *a.joined && b.joined && *b.joined);
  }
  void finish(Member& node) {
    node.round->finish([&](const Result<void>& all) { node.finished = all; });
  }

  io::Loop loop;
  FakeStore store;
  std::deque<Member> members;
  KeyValueRoundSettings settings = [] {
    KeyValueRoundSettings made;
    made.offer.max_restarts = 2;
    return made;
  }();
  Member& a = member("a");
  Member& b = member("b");
};

TEST_F(KeyValueRoundTest, TheRoundIsWhatItsNodesAgreedOn) {
  begin(3);
  const Round& round = **b.joined->operator->();
  EXPECT_EQ(round.number, 3);
  EXPECT_EQ(round.group_rank, 1);
  EXPECT_EQ(round.group_world_size, 2);
  EXPECT_EQ(round.base_rank, 1);
  EXPECT_EQ(round.world_size, 2);
  EXPECT_EQ(round.max_restarts, 2);
  EXPECT_EQ(round.master_addr, "10.0.0.1");
  EXPECT_EQ(round.master_port, 4711);
  EXPECT_EQ(b.round->phase(), Phase::running);
}

TEST_F(KeyValueRoundTest, AFailureInterruptsTheOthersOnceAndCountsOnce) {
  begin();
  b.round->tell_failure("rank 1 failed", false);
  b.round->tell_failure("again", false);
  store.run();
  ASSERT_TRUE(a.interrupted);
  EXPECT_EQ(a.interrupted->kind, Interruption::Kind::rejoin);
  EXPECT_EQ(a.interrupted->why, "rank 1 failed");
  EXPECT_FALSE(b.interrupted);
  a.interrupted.reset();
  a.round->interrupt(Interruption::Kind::end, "later");
  EXPECT_FALSE(a.interrupted) << "the round is over";
  begin(1);
  EXPECT_EQ((**a.joined)->restarts, 1);
  EXPECT_EQ((**b.joined)->restarts, 1);
}

// Its workers failed because those of the first node were stopped.
TEST_F(KeyValueRoundTest, AFailureAfterTheRoundIsInterruptedCountsOnNoNode) {
  begin();
  a.round->interrupt_all("1 node waits to join");
  EXPECT_FALSE(a.interrupted) << "the other nodes do not know yet";
  b.round->tell_failure("rank 1 exited with 1", false);
  store.run();
  EXPECT_EQ(a.interrupted->kind, Interruption::Kind::rejoin);
  EXPECT_EQ(a.interrupted->why, "1 node waits to join");
  EXPECT_EQ(a.round->restarts(), 0);
  EXPECT_EQ(b.round->restarts(), 0);
}

TEST_F(KeyValueRoundTest, AFinalFailureEndsTheJob) {
  begin();
  a.round->tell_failure("rank 0 failed", true);
  store.run();
  ASSERT_TRUE(b.interrupted);
  EXPECT_EQ(b.interrupted->kind, Interruption::Kind::end);
  EXPECT_EQ(a.round->restarts(), 0);
}

TEST_F(KeyValueRoundTest, BesideTorchrunOnlyAFinalFailureInterrupts) {
  agree(a, 0, 0);
  agree(b, 0, 1);
  RankExchange exchange{.round = {.rank = 0, .world = 1, .nodes = {}, .prefix = "alone/"},
                        .own = {},
                        .offered = {},
                        .known_store = StorePlace{}};
  a.round->agree(
      a.keys, exchange, [](const auto&) {},
      [&](const Result<Assignment>& made) {
        a.round->begin(*made, {.ours = {true, true}, .board_prefix = "alone/", .together = false});
      });
  store.run();
  store.values["alone/lockstep/failure"] = encode_failure({1, "rank 1 failed", false, 1});
  store.run();
  EXPECT_TRUE(a.told);
  EXPECT_FALSE(a.interrupted);
}

TEST_F(KeyValueRoundTest, AllComeToTheBarrier) {
  begin();
  finish(a);
  store.run();
  EXPECT_EQ(a.round->phase(), Phase::barrier);
  EXPECT_FALSE(a.finished);
  finish(b);
  store.run();
  EXPECT_TRUE(a.finished && *a.finished && b.finished && *b.finished);
  EXPECT_EQ(a.round->phase(), Phase::over);
}

TEST_F(KeyValueRoundTest, AnInterruptionInTheBarrierComesInItsPlace) {
  begin();
  finish(a);
  b.round->tell_failure("rank 1 failed", false);
  store.run();
  EXPECT_TRUE(a.interrupted);
  finish(b);  // too late: no answer
  store.run();
  EXPECT_FALSE(a.finished || b.finished);
}

TEST_F(KeyValueRoundTest, WhoeverDecidesTheBarrierMayKeepItWaiting) {
  begin();
  int asked = 0;
  a.round->on_barrier([&](const Result<void>&) { ++asked; });
  finish(a);
  finish(b);
  store.run();
  EXPECT_EQ(asked, 1);
  EXPECT_FALSE(a.finished);
  a.round->end_barrier({});
  EXPECT_TRUE(a.finished);
}

TEST_F(KeyValueRoundTest, WhileRanksAreUnknownARejoinMeansToJoinAgainAndAnEndFails) {
  agree(a, 0, 0);
  a.round->interrupt(Interruption::Kind::rejoin, "b is gone");
  EXPECT_EQ(a.joined_again, 1);
  EXPECT_FALSE(a.joined || a.interrupted);
  agree(a, 1, 0);
  a.round->interrupt(Interruption::Kind::end, "b is gone");
  ASSERT_TRUE(a.joined && !*a.joined);
  EXPECT_EQ(a.joined->error().message, "b is gone");
  store.values["r1/torchelastic/role_info/1"] = encode_role_info({.rank = 1});
  store.run();
  EXPECT_EQ(a.round->phase(), Phase::none) << "ranks that come late begin nothing";
}

TEST_F(KeyValueRoundTest, NothingOfAForgottenRoundCallsBack) {
  begin();
  finish(a);
  a.round->reset();
  b.round->tell_failure("rank 1 failed", false);
  store.run();
  EXPECT_FALSE(a.interrupted || a.finished);
  EXPECT_EQ(a.round->restarts(), 0);
}

// A wait on a store's connection blocks all later waits there, such as the wait for the ranks of
// the next round.
TEST_F(KeyValueRoundTest, ANodeThatHasLeftTheRoundNoLongerWaitsInTheBarrier) {
  const std::string last = "r0/torchelastic/agent/terminal_state/last_member";
  begin();
  finish(a);
  store.run();
  EXPECT_TRUE(store.awaited(last));
  a.keys.forget_waits();
  finish(b);
  b.round->reset();
  store.run();
  EXPECT_FALSE(store.awaited(last)) << "the node was counted after it had left the round";

  begin(1);
  finish(b);
  b.round->interrupt(Interruption::Kind::rejoin, "rank 1 failed");
  store.run();
  EXPECT_FALSE(store.awaited("r1/torchelastic/agent/terminal_state/last_member"));
}

TEST_F(KeyValueRoundTest, ALostNodeCostsOneRestartWhileThereAreSome) {
  begin();
  ASSERT_TRUE(a.round->awaits_replacement());
  const std::string says = a.round->await_replacement("b is gone", 1500ms);
  EXPECT_EQ(says, "b is gone; restart 1 of 2, and up to 2 s for another node to take its place");
  a.round->interrupt(Interruption::Kind::rejoin, says);
  agree(a, 1, 0);
  EXPECT_NE(a.round->await_replacement("c is gone", 1s).find("restart 1 of 2"), std::string::npos)
      << "one that is lost while nothing runs costs nothing";
  begin(2);
  a.round->tell_failure("rank 0 failed", false);
  EXPECT_FALSE(a.round->awaits_replacement());
}

TEST_F(KeyValueRoundTest, ALoneOrStorelessNodeWaitsForNobody) {
  begin();
  a.round->lose_store();
  std::optional<std::vector<NodeReport>> reports;
  a.round->exchange_reports({"a", 0, "[]"}, 60s, [&](auto all) { reports = std::move(all); });
  loop.run_once();
  ASSERT_TRUE(reports);
  EXPECT_EQ(reports->size(), 1U);
  finish(a);
  loop.run_once();
  EXPECT_TRUE(a.finished && *a.finished);
}

}  // namespace
}  // namespace lockstep::rendezvous
