// Restarts of a round, replacement of its nodes, and its end.
#include "rendezvous/hub/current_round.h"

#include <gtest/gtest.h>

namespace lockstep::rendezvous::hub {
namespace {

Join joins_with(int max_restarts, bool replacement = true) {
  Join join;
  join.max_restarts = max_restarts;
  join.replacement = replacement;
  return join;
}

CurrentRound round_of(const Join& join) {
  CurrentRound round(7, 3);
  round.admit(join);
  return round;
}

TEST(CurrentRound, TheLowestMaxRestartsCountsAndOneRoundCostsOne) {
  CurrentRound round = round_of(joins_with(3));
  round.admit(joins_with(1));
  EXPECT_EQ(round.max_restarts(), 1);
  EXPECT_TRUE(round.may_restart(0));
  EXPECT_FALSE(round.may_restart(1));
  EXPECT_TRUE(round.pay());
  EXPECT_FALSE(round.pay());
  EXPECT_TRUE(round.may_restart(1));  // is paid for
}

TEST(CurrentRound, NodesAreReplacedUnlessOneFinishedAndLeftOrOneNodeObjects) {
  CurrentRound round = round_of(joins_with(1));
  EXPECT_TRUE(round.replaceable(0));
  EXPECT_FALSE(round.replaceable(1));
  EXPECT_FALSE(round_of(joins_with(1, false)).replaceable(0));
  round.finished_node_left(2);
  EXPECT_FALSE(round.replaceable(0));
  EXPECT_TRUE(round.came_back(2));
  EXPECT_FALSE(round.came_back(2));
  EXPECT_TRUE(round.replaceable(0));
}

TEST(CurrentRound, NodesThatFinishedAndLeftCount) {
  CurrentRound round(7, 3);
  round.finished_node_left(1);
  EXPECT_FALSE(round.all_finished(1));
  EXPECT_TRUE(round.all_finished(2));
  EXPECT_EQ(round.unfinished({0, 1, 2}), (std::vector<int>{0, 2}));
}

TEST(CurrentRound, AnAdoptedRoundThatWasOverIsPaidFor) {
  CurrentRound over(7, 3, {0}, true);
  EXPECT_TRUE(over.adopted());
  EXPECT_FALSE(over.running());
  EXPECT_FALSE(over.pay());
  CurrentRound running(7, 3, {0}, false);
  EXPECT_TRUE(running.running());
  EXPECT_TRUE(running.pay());
  running.interrupt();
  EXPECT_FALSE(running.running());
}

TEST(CurrentRound, ANodeThatStopsItsWorkersIsWaitedFor) {
  Roster roster;
  auto& node = roster.add(1, {}, "a", Ms(0));
  EXPECT_FALSE(CurrentRound(7, 3).awaits_rejoin(roster));
  EXPECT_TRUE(CurrentRound(7, 3, {}, true).awaits_rejoin(roster));  // may be one of the round
  roster.set_stage(node, Roster::Stage::placed);
  EXPECT_TRUE(CurrentRound(7, 3).awaits_rejoin(roster));
  roster.set_stage(node, Roster::Stage::joined);
  EXPECT_FALSE(CurrentRound(7, 3).awaits_rejoin(roster));
  roster.expect_back(node, {});
  EXPECT_TRUE(CurrentRound(7, 3).awaits_rejoin(roster));
}

}  // namespace
}  // namespace lockstep::rendezvous::hub
