// Folding the wishes of the join queue: one member writes for the others.
#include "rendezvous/dynamic/dynamic_state_testing.h"

#include <gtest/gtest.h>

#include <array>

namespace lockstep::rendezvous::dynamic {
namespace {
using namespace testing;  // NOLINT
using Wishes = std::vector<std::optional<JoinWish>>;

Node ours(int number) {
  return {"10.0.0." + std::to_string(number), number, local_id_of({})};
}

class DynamicFold : public DynamicState {
 protected:
  JoinWish wish(const Node& node, std::int64_t round, bool again = false) {
    return {node, round, again, -1};
  }
  // Returns a complete round 3 of `nodes` nodes.
  RendezvousState running(int nodes) {
    RendezvousState made = state({ours(1)}, true);
    for (int i = 2; i <= nodes; ++i) {
      made.participants[ours(i)] = i - 1;
      made.last_heartbeats[ours(i)] = clock_.now.wall;
    }
    made.participants[ours(1)] = 0;
    made.completion = Completion{3, nodes};
    return made;
  }
};

TEST_P(DynamicFold, AllComeInWithOneWriteAndTheRoundIsComplete) {
  DynamicMember one = member(ours(1), 3, 3);
  const Wishes wishes = {wish(ours(1), 0), std::nullopt, wish(ours(3), 0), wish(ours(2), 0),
                         wish(ours(4), 0)};
  const auto folded = one.fold({}, wishes, *wishes[0], clock_.now);
  EXPECT_EQ(folded.granted, (std::vector<bool>{true, false, true, true, true}));
  EXPECT_TRUE(folded.state.complete);
  EXPECT_EQ(folded.state.participants.size(), 3U);
  EXPECT_TRUE(folded.state.redundancy_list.contains(ours(4)));
  EXPECT_EQ(folded.state.last_heartbeats.size(), 4U);
}

TEST_P(DynamicFold, ARoundIsLeftByAllAndBegunAnewWithOneWrite) {
  DynamicMember one = member(ours(1), 3, 3);
  RendezvousState before = running(3);
  ASSERT_TRUE(one.next(before, clock_.now).is(Step::Kind::write));
  const Wishes wishes = {wish(ours(2), 3, true), wish(ours(3), 3, true), wish(ours(1), 3, true)};
  const auto folded = one.fold(before, wishes, *wishes[2], clock_.now);
  EXPECT_EQ(folded.granted, (std::vector<bool>{true, true, true}));
  EXPECT_EQ(folded.state.round, 4);
  EXPECT_TRUE(folded.state.participants.contains(ours(1)));
  EXPECT_EQ(folded.state.participants.size() + folded.state.wait_list.size(), 3U);
}

// Survivors get their seats before a newcomer, in whatever order they leave.
TEST_P(DynamicFold, NodesOfTheRoundBeforeComeFirst) {
  for (const bool own_is_last : {false, true}) {
    DynamicMember one = member(ours(1), 3, 3);
    one.next({}, clock_.now);
    const RendezvousState before = running(3);
    ASSERT_TRUE(one.next(before, clock_.now).is(Step::Kind::done));
    one.begin(Op::join, clock_.now);
    const JoinWish own = wish(ours(1), 3, true);
    Wishes wishes = {wish(ours(2), 3, true), wish(ours(3), 3, true)};
    if (!own_is_last) wishes.insert(wishes.end(), {own, wish(ours(4), 3)});
    const auto folded = one.fold(before, wishes, own, clock_.now);
    EXPECT_TRUE(folded.state.complete);
    for (const int number : {1, 2, 3})
      EXPECT_TRUE(folded.state.participants.contains(ours(number))) << number;
  }
}

TEST_P(DynamicFold, AWishIsVoidWhereItsNodeIsElsewhereByNow) {
  DynamicMember one = member(ours(1), 2, 4);
  RendezvousState now = running(2);
  now.redundancy_list.insert(ours(3));
  now.last_heartbeats[ours(3)] = clock_.now.wall;
  one.presume_dead(ours(4), clock_.now.wall);
  const Wishes wishes = {wish(ours(3), 3), wish(ours(4), 3), wish(ours(2), 3)};
  const auto folded = one.fold(now, wishes, wish(ours(1), 2), clock_.now);
  EXPECT_EQ(folded.granted, (std::vector<bool>{false, false, false}));
  EXPECT_TRUE(folded.state.wait_list.empty());
  now.complete = false;  // node 2 is in the forming round and need not leave
  EXPECT_FALSE(
      one.fold(now, Wishes{wish(ours(2), 3, true)}, wish(ours(1), 2), clock_.now).granted[0]);
}

TEST_P(DynamicFold, AWishOfAnotherRoundIsVoid) {
  DynamicMember one = member(ours(1), 2, 4);
  const RendezvousState now = running(2);
  const Wishes wishes = {wish(ours(2), 2, true), wish(ours(3), 2), wish(ours(4), 3)};
  const auto folded = one.fold(now, wishes, wish(ours(1), 2), clock_.now);
  EXPECT_EQ(folded.granted, (std::vector<bool>{false, false, true}));
  EXPECT_TRUE(folded.state.participants.contains(ours(2))) << "it has come back by itself";
  EXPECT_FALSE(folded.state.wait_list.contains(ours(3)));
  EXPECT_TRUE(folded.state.wait_list.contains(ours(4)));
}

TEST_P(DynamicFold, AClosedRendezvousTakesNobody) {
  DynamicMember one = member(ours(1), 2, 4);
  RendezvousState now;
  now.closed = true;
  const Wishes wishes = {wish(ours(2), 0)};
  EXPECT_FALSE(one.fold(now, wishes, wish(ours(1), 0), clock_.now).granted[0]);
}

TEST_P(DynamicFold, WhoseWishWasCarriedOutDoesNotLeaveTheNewRound) {
  DynamicMember one = member(ours(1), 2, 2);
  DynamicMember two = member(ours(2), 2, 2);
  const RendezvousState before = running(2);
  const Step leaving = two.next(before, clock_.now);
  ASSERT_TRUE(leaving.wish);
  EXPECT_TRUE(leaving.wish->again);
  two.filed(*leaving.wish);
  const Wishes wishes = {*leaving.wish, wish(ours(1), 3, true)};
  auto folded = one.fold(before, wishes, *wishes[1], clock_.now);
  ASSERT_EQ(folded.state.round, 4);
  folded.state.wait_list.erase(ours(2));
  folded.state.participants[ours(2)] = 2;
  EXPECT_FALSE(two.next(folded.state, clock_.now).is(Step::Kind::write));
}

INSTANTIATE_TEST_SUITE_P(, DynamicFold, ::testing::Values(false));

}  // namespace
}  // namespace lockstep::rendezvous::dynamic
