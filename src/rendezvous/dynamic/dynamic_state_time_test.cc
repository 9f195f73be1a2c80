// Time and incomplete views of a round, where the rules differ from torchrun's.
#include "rendezvous/dynamic/dynamic_state.h"
#include "rendezvous/dynamic/dynamic_state_testing.h"

#include <gtest/gtest.h>

#include <chrono>

namespace lockstep::rendezvous::dynamic {
namespace {
using namespace std::chrono_literals;
using namespace testing;  // NOLINT
using Kind = Step::Kind;

class DynamicStateObserved : public DynamicState {};
INSTANTIATE_TEST_SUITE_P(Observed, DynamicStateObserved, ::testing::Values(false));

TEST_P(DynamicStateObserved, ClocksThatDifferEvictNobody) {
  for (const auto skew : {-24h, 24h}) {
    auto stored = state({kA, kB}, true);
    stored.last_heartbeats[kB] += skew;
    DynamicMember observed(kA, settings_);
    settings_.exact = true;
    DynamicMember exact(kA, settings_);
    settings_.exact = false;
    for (int i = 0; i < 20; ++i) {
      clock_.pass(5s);
      stored.last_heartbeats[kA] = clock_.now.wall;
      stored.last_heartbeats[kB] = clock_.now.wall + skew;
      ASSERT_EQ(observed.sanitize(stored, clock_.now), stored);
      ASSERT_EQ(exact.sanitize(stored, clock_.now).participants.size(), skew < 0h ? 1U : 2U);
    }
  }
}

TEST_P(DynamicStateObserved, BesideATorchrunAgentThatIsAheadTheOwnHeartbeatIsToo) {
  const Node own{"10.0.0.1", 7, local_id_of({})};
  for (const auto skew : {-20s, 20s, 7200s}) {
    auto stored = state({own, kB}, true);
    stored.last_heartbeats[kB] += skew;
    DynamicMember alive(own, settings_);
    EXPECT_EQ(alive.sanitize(stored, clock_.now), stored);
    clock_.pass(settings_.keep_alive_interval);
    alive.begin(Op::keep_alive, clock_.now);
    const Step step = alive.next(stored, clock_.now);
    ASSERT_TRUE(step.is(Kind::write));
    const auto ahead = step.state.last_heartbeats.at(own) - clock_.now.wall;
    EXPECT_EQ(ahead, skew == 20s ? 20s : 0s) << skew.count();
  }
}

TEST_P(DynamicStateObserved, WhoIsPresumedDeadLivesWithAnotherHeartbeat) {
  auto stored = state({kA, kB, kC}, true);
  DynamicMember own(kA, settings_);
  own.presume_dead(kB, stored.last_heartbeats.at(kB));
  const auto left = own.sanitize(stored, clock_.now);
  EXPECT_FALSE(takes_part(left, kB));
  EXPECT_TRUE(takes_part(left, kC));
  stored.last_heartbeats[kB] += 1s;
  EXPECT_EQ(own.sanitize(stored, clock_.now), stored);
}

TEST_P(DynamicStateObserved, ALastCallLastsAsLongByAnyClock) {
  auto stored = state({kA, kB}, false);
  stored.deadline = clock_.now.wall - 2h;  // written by a node whose clock is far behind
  DynamicSettings settings = settings_;
  settings.min_nodes = 1;
  settings.max_nodes = 3;
  DynamicMember joining(kB, settings);
  joining.begin(Op::join, clock_.now);
  ASSERT_TRUE(joining.next(state({kA}, false), clock_.now).is(Kind::write));
  for (int i = 0; i < 31; ++i) {
    ASSERT_FALSE(joining.next(stored, clock_.now).state.complete) << i;
    clock_.pass(1s);
    beat(stored);
  }
  EXPECT_TRUE(joining.next(stored, clock_.now).state.complete);
}

TEST_P(DynamicStateObserved, ATimeWithoutLookingIsNobodysSilence) {
  auto stored = state({kA, kB}, true);
  DynamicMember cut(kA, settings_);
  EXPECT_EQ(cut.sanitize(stored, clock_.now), stored);
  clock_.pass(10min);
  EXPECT_EQ(cut.sanitize(stored, clock_.now), stored);  // evicts neither B nor A itself
  clock_.pass(5s);
  EXPECT_EQ(cut.sanitize(stored, clock_.now), stored);
}

TEST_P(DynamicStateObserved, NobodyTakesItselfForDead) {
  auto stored = state({kA, kB}, true);
  DynamicMember silent(kA, settings_);
  for (int i = 0; i < 20; ++i) {  // looks, but never gets a heartbeat through
    EXPECT_TRUE(silent.sanitize(stored, clock_.now).participants.contains(kA)) << i;
    clock_.pass(5s);
  }
  EXPECT_FALSE(silent.sanitize(stored, clock_.now).participants.contains(kB));
}

TEST_P(DynamicStateObserved, AClockSetBackStillRenewsTheOwnHeartbeat) {
  auto stored = state({kA}, true);
  DynamicMember alive(kA, settings_);
  alive.begin(Op::keep_alive, clock_.now);
  EXPECT_TRUE(alive.next(stored, clock_.now).is(Kind::done));
  clock_.now.wall -= 3h;
  clock_.now.steady += 5s;
  const Step step = alive.next(stored, clock_.now);
  ASSERT_TRUE(step.is(Kind::write));
  EXPECT_EQ(step.state.last_heartbeats.at(kA), clock_.now.wall);
}

TEST_P(DynamicStateObserved, ARoundThatLostAMemberBeforeWeSawItIsNotTaken) {
  for (const Node& gone : {kA, kB, kC}) {
    if (gone == kB) continue;
    auto stored = state({kA, kB, kC}, false);
    auto joining = member(kB, 2, 3);
    ASSERT_TRUE(joining.next(state({kA}, false), clock_.now).is(Kind::write));
    stored = state({kA, kB, kC}, true);
    stored.participants.erase(gone);
    stored.last_heartbeats.erase(gone);
    Step step = joining.next(stored, clock_.now);
    ASSERT_TRUE(step.is(Kind::write));
    EXPECT_FALSE(step.state.participants.contains(kB));
    step = joining.next(step.state, clock_.now);
    ASSERT_TRUE(step.is(Kind::write));
    EXPECT_TRUE(step.state.wait_list.contains(kB));
  }
}

TEST_P(DynamicStateObserved, ACompletionOfAnEarlierRoundDoesNotCount) {
  auto joining = member(kB, 2, 2);
  const Step join = joining.next(state({kA}, false), clock_.now);
  auto stored = join.state;
  stored.completion = Completion{2, 17};  // torchrun completed round 3 and carried this along
  EXPECT_TRUE(joining.next(stored, clock_.now).is(Kind::done));
}

}  // namespace
}  // namespace lockstep::rendezvous::dynamic
