// Every row of the join table and all other operations, by our rules and by torchrun's.
#include "rendezvous/dynamic/dynamic_state.h"

#include "rendezvous/dynamic/dynamic_state_testing.h"

#include <gtest/gtest.h>

#include <chrono>

namespace lockstep::rendezvous::dynamic {
namespace {
using namespace std::chrono_literals;
using namespace testing;  // NOLINT
using Kind = Step::Kind;

INSTANTIATE_TEST_SUITE_P(Time, DynamicState, ::testing::Bool(),
                         [](const auto& way) { return way.param ? "Exact" : "Observed"; });

TEST_P(DynamicState, Row1ClosedWhileSpareIsAGracefulExit) {
  auto stored = state({kA}, true);
  add(stored, &RendezvousState::redundancy_list, kB);
  stored.closed = true;
  EXPECT_TRUE(member(kB, 1, 1).next(stored, clock_.now).is(Kind::graceful_exit));
}

TEST_P(DynamicState, Row2Closed) {
  auto stored = state({kA}, true);
  stored.closed = true;
  EXPECT_TRUE(member(kB, 1, 1).next(stored, clock_.now).is(Kind::closed));
  add(stored, &RendezvousState::wait_list, kB);
  EXPECT_TRUE(member(kB, 1, 2).next(stored, clock_.now).is(Kind::closed));
  EXPECT_TRUE(member(kB, 1, 2).next(state({}, false), clock_.now).is(Kind::write));
}

TEST_P(DynamicState, Row3SpareOfAFullRoundWaitsWithoutEnd) {
  auto stored = state({kA}, true);
  add(stored, &RendezvousState::redundancy_list, kB);
  auto spare = member(kB, 1, 1);
  Step step = spare.next(stored, clock_.now);
  ASSERT_TRUE(step.is(Kind::wait));
  EXPECT_EQ(step.until, clock_.now.steady + 1s);
  for (int i = 0; i < 1000; ++i) {
    clock_.pass(5s);
    stored.last_heartbeats[kA] = clock_.now.wall;
    step = spare.next(stored, clock_.now);
    ASSERT_TRUE(step.is(Kind::write)) << i;  // nothing but the keep-alive
    auto expected = stored;
    expected.last_heartbeats[kB] = clock_.now.wall;
    ASSERT_EQ(step.state, expected);
    stored = step.state;
    ASSERT_TRUE(spare.next(stored, clock_.now).is(Kind::wait));
  }
}

TEST_P(DynamicState, Row4SpareTakesAFreePlaceWithItsTimeRenewed) {
  auto stored = state({kA}, true);
  add(stored, &RendezvousState::redundancy_list, kC);
  auto spare = member(kC, 1, 2);
  clock_.pass(20min);
  beat(stored);
  const Step step = spare.next(stored, clock_.now);
  ASSERT_TRUE(step.is(Kind::write));
  EXPECT_FALSE(takes_part(step.state, kC));
  EXPECT_FALSE(step.state.last_heartbeats.contains(kC));
  const Step then = spare.next(step.state, clock_.now);
  ASSERT_TRUE(then.is(Kind::write));
  EXPECT_TRUE(then.state.wait_list.contains(kC));
}

TEST_P(DynamicState, Row5DoneWithPlaceInTheRound) {
  auto joining = member(kB, 2, 2);
  const Step join = joining.next(state({kA}, false), clock_.now);
  ASSERT_TRUE(join.is(Kind::write));
  const Step step = joining.next(join.state, clock_.now);
  ASSERT_TRUE(step.is(Kind::done));
  const auto place = place_of(step.state, kB);
  EXPECT_EQ(place.round, 3);
  EXPECT_EQ(place.rank, 1U);
  EXPECT_EQ(place.nodes, (std::vector<Node>{kA, kB}));
}

TEST_P(DynamicState, Rows6And7TimeOverTidiesUpForFiveSecondsThenFails) {
  for (const bool waiting : {false, true}) {
    auto joining = member(kC, 2, 2);
    Step step = joining.next(state({}, false), clock_.now);  // leaves the previous round
    ASSERT_TRUE(step.is(Kind::write));
    clock_.pass(settings_.join_timeout + 1us);
    auto stored = waiting ? state({kA, kB}, true) : state({kC}, false);
    if (waiting) add(stored, &RendezvousState::wait_list, kC);
    step = joining.next(stored, clock_.now);
    ASSERT_TRUE(step.is(Kind::write));
    EXPECT_FALSE(takes_part(step.state, kC));
    EXPECT_FALSE(step.state.last_heartbeats.contains(kC));
    EXPECT_TRUE(joining.next(step.state, clock_.now).is(Kind::timed_out));
    clock_.pass(5s);
    beat(stored);
    EXPECT_TRUE(joining.next(stored, clock_.now).is(Kind::timed_out));
  }
}

TEST_P(DynamicState, Row7TimeNotOverAtTheLastMoment) {
  auto joining = member(kC, 2, 2);
  ASSERT_TRUE(joining.next(state({}, false), clock_.now).is(Kind::write));
  clock_.pass(settings_.join_timeout);
  EXPECT_TRUE(joining.next(state({kC}, false), clock_.now).is(Kind::wait));
}

TEST_P(DynamicState, Row8LateForACompleteRoundWithRoomWaitsForTheNext) {
  const auto stored = state({kA}, true);
  auto joining = member(kB, 1, 2);
  const Step step = joining.next(stored, clock_.now);
  ASSERT_TRUE(step.is(Kind::write));
  auto expected = stored;
  add(expected, &RendezvousState::wait_list, kB);
  EXPECT_EQ(step.state, expected);
  EXPECT_EQ(joining.waiting(step.state), 1U);
  EXPECT_TRUE(joining.next(step.state, clock_.now).is(Kind::wait));
}

TEST_P(DynamicState, Row9LateForAFullRoundBecomesASpare) {
  auto stored = state({kA, kB}, true);
  const Step step = member(kC, 1, 2).next(stored, clock_.now);
  ASSERT_TRUE(step.is(Kind::write));
  auto expected = stored;
  add(expected, &RendezvousState::redundancy_list, kC);
  EXPECT_EQ(step.state, expected);
  // torchrun lets such a node go on waiting, which interrupts the round for nothing.
  add(stored, &RendezvousState::wait_list, kC);
  auto waiting = member(kC, 1, 2);
  EXPECT_EQ(waiting.waiting(stored), settings_.exact ? 1U : 0U);
  const Step then = waiting.next(stored, clock_.now);
  if (settings_.exact) {
    EXPECT_TRUE(then.is(Kind::wait));
  } else {
    EXPECT_EQ(then.state, expected);
  }
}

TEST_P(DynamicState, Row10TheLastCallCompletesTheRound) {
  auto joining = member(kB, 2, 3);
  Step step = joining.next(state({kA}, false), clock_.now);
  ASSERT_TRUE(step.is(Kind::write));
  ASSERT_EQ(step.state.deadline, clock_.now.wall + 30s);
  auto stored = step.state;
  for (int i = 0; i < 30; ++i) {
    ASSERT_TRUE(joining.next(stored, clock_.now).is(Kind::wait)) << i;
    clock_.pass(1s);
    beat(stored);
  }
  EXPECT_TRUE(joining.next(stored, clock_.now).is(Kind::wait));
  clock_.pass(1us);
  step = joining.next(stored, clock_.now);
  ASSERT_TRUE(step.is(Kind::write));
  EXPECT_TRUE(step.state.complete);
  EXPECT_EQ(step.state.deadline, std::nullopt);
  EXPECT_EQ(step.state.participants, (std::map<Node, std::int64_t>{{kA, 0}, {kB, 1}}));
  EXPECT_EQ(step.state.round, 3);
}

TEST_P(DynamicState, Row10NotWithFewerThanMinOrMoreThanMax) {
  for (const auto& [min, max] : {std::pair<std::size_t, std::size_t>{3, 4}, {1, 1}}) {
    auto joining = member(kB, min, max);
    auto stored = state({kA, kB}, false);
    stored.deadline = clock_.now.wall - 1h;
    Step step = joining.next(state({}, false), clock_.now);
    for (int i = 0; i < 40; ++i) {
      clock_.pass(1s);
      beat(stored);
      step = joining.next(stored, clock_.now);
      if (step.is(Kind::write)) joining.begin(Op::join, clock_.now);
      ASSERT_FALSE(step.state.complete);
    }
  }
}

TEST_P(DynamicState, Row11JoiningStartsTheLastCallAtMinAndEndsItAtMax) {
  auto stored = state({}, false);
  add(stored, &RendezvousState::wait_list, kA);
  Step step = member(kA, 2, 3).next(stored, clock_.now);
  ASSERT_TRUE(step.is(Kind::write));
  EXPECT_TRUE(step.state.wait_list.empty());
  EXPECT_EQ(step.state.participants, (std::map<Node, std::int64_t>{{kA, 0}}));
  EXPECT_EQ(step.state.deadline, std::nullopt);
  const UtcTime second = clock_.now.wall;
  step = member(kC, 2, 3).next(step.state, clock_.now);
  EXPECT_EQ(step.state.deadline, second + 30s);
  EXPECT_EQ(step.state.participants, (std::map<Node, std::int64_t>{{kA, 0}, {kC, 0}}));
  clock_.pass(2s);
  step = member(kB, 2, 3).next(step.state, clock_.now);
  EXPECT_TRUE(step.state.complete);
  EXPECT_EQ(step.state.deadline, std::nullopt);
  EXPECT_EQ(step.state.participants, (std::map<Node, std::int64_t>{{kA, 0}, {kB, 1}, {kC, 2}}));
  EXPECT_EQ(step.state.last_heartbeats[kB], clock_.now.wall);
  EXPECT_EQ(step.state.completion.has_value(), !settings_.exact);
}

TEST_P(DynamicState, Row11MinEqualsMaxIsImmediate) {
  const Step step = member(kA, 1, 1).next(RendezvousState{}, clock_.now);
  EXPECT_TRUE(step.state.complete);
  EXPECT_EQ(step.state.deadline, std::nullopt);
  EXPECT_EQ(step.state.round, 0);
}

TEST_P(DynamicState, Rows12And13KeepAliveWhenDueElseWaitASecond) {
  auto joining = member(kA, 2, 2);
  Step step = joining.next(state({}, false), clock_.now);
  auto stored = step.state;
  for (int i = 0; i < 5; ++i) {
    step = joining.next(stored, clock_.now);
    ASSERT_TRUE(step.is(Kind::wait));
    ASSERT_EQ(step.until, clock_.now.steady + 1s);
    clock_.pass(1s);
  }
  step = joining.next(stored, clock_.now);
  ASSERT_TRUE(step.is(Kind::write));
  stored.last_heartbeats[kA] = clock_.now.wall;
  EXPECT_EQ(step.state, stored);
}

TEST_P(DynamicState, JoinLeavesTheRoundBeforeFirst) {
  const auto stored = state({kA, kB}, true);
  auto again = member(kB, 1, 2);
  Step step = again.next(stored, clock_.now);
  ASSERT_TRUE(step.is(Kind::write));
  EXPECT_TRUE(step.state.complete);
  EXPECT_EQ(step.state.round, 3);
  EXPECT_FALSE(step.state.last_heartbeats.contains(kB));
  step = again.next(step.state, clock_.now);
  EXPECT_TRUE(step.state.wait_list.contains(kB));
  // The last node to leave opens the next round and adds both nodes.
  auto other = member(kA, 1, 2);
  step = other.next(step.state, clock_.now);
  ASSERT_TRUE(step.is(Kind::write));
  EXPECT_FALSE(step.state.complete);
  EXPECT_EQ(step.state.round, 4);
  EXPECT_TRUE(step.state.participants.empty());
  step = other.next(step.state, clock_.now);
  step = again.next(step.state, clock_.now);
  EXPECT_TRUE(step.state.complete);
  EXPECT_TRUE(step.state.wait_list.empty());
  EXPECT_TRUE(other.next(step.state, clock_.now).is(Kind::done));
}

TEST_P(DynamicState, LeavingAFormingRoundEndsTheLastCall) {
  auto stored = state({kA, kB}, false);
  stored.deadline = clock_.now.wall + 10s;
  auto leaving = member(kB, 2, 3);
  leaving.begin(Op::leave, clock_.now);
  Step step = leaving.next(stored, clock_.now);
  ASSERT_TRUE(step.is(Kind::write));
  EXPECT_EQ(step.state.deadline, std::nullopt);
  EXPECT_EQ(step.state.round, 3);
  EXPECT_TRUE(leaving.next(step.state, clock_.now).is(Kind::done));
  clock_.pass(settings_.join_timeout + 1s);
  EXPECT_TRUE(leaving.next(state({kB}, false), clock_.now).is(Kind::timed_out));
}

TEST_P(DynamicState, WithdrawLeavesEveryList) {
  for (const auto list : {&RendezvousState::wait_list, &RendezvousState::redundancy_list}) {
    auto stored = state({kA}, true);
    add(stored, list, kB);
    auto leaving = member(kB, 1, 2);
    leaving.begin(Op::leave, clock_.now);
    EXPECT_TRUE(leaving.next(stored, clock_.now).is(Kind::done));
    leaving.begin(Op::withdraw, clock_.now);
    const Step step = leaving.next(stored, clock_.now);
    ASSERT_TRUE(step.is(Kind::write));
    EXPECT_EQ(step.state, state({kA}, true));
    EXPECT_TRUE(leaving.next(step.state, clock_.now).is(Kind::done));
  }
}

TEST_P(DynamicState, KeepAliveOnlyWhenDueAndListed) {
  auto stored = state({kA, kB}, true);
  auto alive = member(kA, 2, 2);
  alive.begin(Op::keep_alive, clock_.now);
  EXPECT_TRUE(alive.next(stored, clock_.now).is(Kind::done));
  clock_.pass(5s);
  EXPECT_TRUE(alive.next(stored, clock_.now).is(Kind::write));
  clock_.pass(1s);
  EXPECT_TRUE(alive.next(stored, clock_.now).is(Kind::timed_out));
  alive.begin(Op::keep_alive, clock_.now);
  stored.participants.erase(kA);
  stored.last_heartbeats.erase(kA);
  EXPECT_TRUE(alive.next(stored, clock_.now).is(Kind::done));
  EXPECT_FALSE(takes_part(stored, kA));
}

TEST_P(DynamicState, Close) {
  auto closing = member(kA, 1, 1);
  closing.begin(Op::close, clock_.now);
  Step step = closing.next(state({kA}, true), clock_.now);
  ASSERT_TRUE(step.is(Kind::write));
  EXPECT_TRUE(step.state.closed);
  EXPECT_TRUE(closing.next(step.state, clock_.now).is(Kind::done));
  clock_.pass(31s);
  EXPECT_TRUE(closing.next(state({kB}, true), clock_.now).is(Kind::timed_out));
}

TEST_P(DynamicState, WhoFailsClosesOnlyTheRoundThatItIsIn) {
  auto failing = member(kB, 1, 2);
  failing.begin(Op::fail, clock_.now);
  EXPECT_TRUE(failing.next(state({kA}, true), clock_.now).is(Kind::done)) << "given up";
  EXPECT_TRUE(failing.next(state({kA}, false), clock_.now).is(Kind::done));
  const Step step = failing.next(state({kA, kB}, true), clock_.now);
  ASSERT_TRUE(step.is(Kind::write));
  EXPECT_TRUE(step.state.closed);
}

TEST_P(DynamicState, SilentNodesAreDroppedFromAllLists) {
  auto stored = state({kA, kB}, true);
  add(stored, &RendezvousState::wait_list, kC);
  add(stored, &RendezvousState::redundancy_list, kD);
  auto watching = member(kA, 1, 2);
  const auto alive = [&] {
    clock_.pass(5s);
    stored.last_heartbeats[kA] = clock_.now.wall;
    return watching.sanitize(stored, clock_.now);
  };
  EXPECT_EQ(watching.sanitize(stored, clock_.now), stored);
  for (int i = 0; i < 3; ++i)
    EXPECT_EQ(alive(), stored) << i;
  auto left = alive();
  EXPECT_EQ(left.participants, (std::map<Node, std::int64_t>{{kA, 0}}));
  EXPECT_TRUE(left.wait_list.empty() && left.redundancy_list.empty());
  EXPECT_EQ(left.last_heartbeats.size(), 1U);
  EXPECT_TRUE(left.complete);
  // The last participant is dead: the next round opens. Too few remain: the last call is canceled.
  stored.participants.erase(kA);
  left = alive();
  EXPECT_FALSE(left.complete);
  EXPECT_EQ(left.round, 4);
  stored = state({kA, kB}, false);
  stored.deadline = clock_.now.wall;
  settings_.min_nodes = 2;
  DynamicMember other(kA, settings_);
  left = other.sanitize(stored, clock_.now);
  for (int i = 0; i < 4; ++i) {
    clock_.pass(5s);
    stored.last_heartbeats[kA] = clock_.now.wall;
    left = other.sanitize(stored, clock_.now);
  }
  EXPECT_EQ(left.deadline, std::nullopt);
  EXPECT_EQ(left.round, 3);
}

}  // namespace
}  // namespace lockstep::rendezvous::dynamic
