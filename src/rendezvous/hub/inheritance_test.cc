// Which round of a previous coordinator goes on, and how long its nodes are waited for.
#include "rendezvous/hub/inheritance.h"

#include <gtest/gtest.h>

namespace lockstep::rendezvous::hub {
namespace {
using namespace std::chrono_literals;

constexpr Time kStart{1h};

CoordinatorSettings left_by(int lead, std::vector<int> finished) {
  CoordinatorSettings settings;
  settings.max_nodes = 4;
  settings.takeover = true;
  settings.first_round = 7;
  settings.last_lead = lead;
  settings.last_finished = std::move(finished);
  return settings;
}

Join of_round(std::int64_t round, int nodes, int restarts = 0) {
  Join join;
  join.last_round = round;
  join.last_nodes = nodes;
  join.restarts = restarts;
  return join;
}

TEST(Inheritance, OnlyTheLastRoundWithinMaxNodesGoesOn) {
  const Inheritance heir(left_by(0, {}));
  EXPECT_TRUE(heir.has_round_of(of_round(6, 4)));
  EXPECT_FALSE(heir.has_round_of(of_round(5, 4)));
  EXPECT_FALSE(heir.has_round_of(of_round(6, 5)));
  EXPECT_FALSE(heir.has_round_of(of_round(6, 0)));
  auto settings = left_by(0, {});
  settings.takeover = false;
  EXPECT_FALSE(Inheritance(settings).has_round_of(of_round(6, 4)));
}

TEST(Inheritance, ARecordedRestartThatTheNodeDoesNotKnowHasEndedTheRound) {
  auto settings = left_by(0, {0, 3, -1});
  settings.restarts = 1;
  Inheritance heir(settings);
  const CurrentRound over = heir.adopt(of_round(6, 3, 0), kStart);
  EXPECT_FALSE(over.running());
  EXPECT_EQ(over.finished_and_gone(), std::vector<int>{0});  // the round had three ranks
  EXPECT_TRUE(heir.adopt(of_round(6, 3, 1), kStart).running());
}

TEST(Inheritance, TheLostLeaderIsNotWaitedForAndNeededNodesAreLonger) {
  Inheritance heir(left_by(1, {}));
  EXPECT_FALSE(heir.adopting());
  (void)heir.adopt(of_round(6, 3), kStart);
  EXPECT_TRUE(heir.adopting());
  EXPECT_EQ(heir.ends({}, false), kStart);
  EXPECT_EQ(heir.ends({1}, false), kStart);
  EXPECT_EQ(heir.ends({2}, true), kStart + 1s);
  EXPECT_EQ(heir.ends({1, 2}, false), kStart + 10s);
  heir.settle();
  EXPECT_FALSE(heir.adopting());
}

TEST(Inheritance, TheReasonNamesTheLostLeader) {
  auto settings = left_by(1, {});
  EXPECT_EQ(Inheritance(settings).why_missing({1}, 3), "the node that led the rendezvous is gone");
  settings.last_lead_called = "b";
  EXPECT_EQ(Inheritance(settings).why_missing({0, 1}, 3),
            "2 of 3 nodes have not come over since b, which led the rendezvous, is gone");
}

TEST(Inheritance, SurvivorsShortenTheLastCallAndAllButOneEndIt) {
  Roster::Member a;
  Roster::Member b;
  Roster::Member stranger;
  const Inheritance heir(left_by(0, {}));
  EXPECT_EQ(heir.last_call({&stranger}), 30s);
  EXPECT_FALSE(Inheritance::survivors_are_here({&stranger}));
  a.offer = of_round(6, 3);
  b.offer = of_round(5, 2);
  EXPECT_EQ(heir.last_call({&stranger, &a}), 1s);
  EXPECT_FALSE(Inheritance::survivors_are_here({&b, &a})) << "b is of an earlier round";
  b.offer = of_round(6, 3);
  EXPECT_TRUE(Inheritance::survivors_are_here({&b, &a}));
}

}  // namespace
}  // namespace lockstep::rendezvous::hub
