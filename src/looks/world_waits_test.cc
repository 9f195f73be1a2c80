// The shares of waits, from the nodes to the leader.
#include "looks/world_looks.h"

#include <gtest/gtest.h>

#include <chrono>
#include <string>

namespace lockstep::looks {
namespace {

using std::chrono::milliseconds;
using namespace std::chrono_literals;

// A node with ranks 2 and 3 and the leader with ranks 0 and 1.
struct TwoNodes {
  // Passes some time and a look. Returns how many bytes were told.
  std::size_t look(milliseconds after, const std::string& waits, bool arrives = true) {
    now += after;
    const auto news = node.feed(fold, {.waits = waits}, now);
    const std::string text = news ? print_news(*news) : "";
    if (news && arrives) leader.hear(1, text, now);
    return text.size();
  }
  // Returns what the leader knows about the waits of a rank. -1: nothing.
  double waits_of(int rank) const {
    const auto all = leader.waits("0:kkkk", now);
    return all && all->contains(rank) ? all->at(rank).waits : -1;
  }

  io::TimePoint now{5h};
  Fold fold{{"n2"}, {{.key = 1, .ranks = {{0, {2, 3}}}}}};
  NodeTeller node;
  WorldLooks leader{2, 4};
};

TEST(WorldWaits, SharesOfWaitsAreToldRarelyAndBriefly) {
  TwoNodes world;
  EXPECT_GT(world.look(0ms, "2:aakk"), 0U);
  EXPECT_EQ(world.waits_of(0), 0.5);
  EXPECT_EQ(world.waits_of(2), 0);
  for (int second = 1; second <= 9; ++second)
    EXPECT_LE(world.look(1000ms, "2:bakk"), 16U) << "not within ten seconds";
  EXPECT_EQ(world.waits_of(2), 0);
  EXPECT_LE(world.look(1000ms, "2:bakk"), 40U);
  EXPECT_EQ(world.waits_of(2), 0.05);
  for (int second = 11; second <= 69; ++second)
    EXPECT_LE(world.look(1000ms, "2:bakk"), 16U) << "they have not changed";
}

TEST(WorldWaits, LostSharesOfWaitsAreToldAgain) {
  TwoNodes world;
  world.look(0ms, "2:aakk");
  world.look(20s, "2:ddkk", false);
  for (int second = 2; second < 60; second += 2)
    world.look(2000ms, "2:ddkk");
  EXPECT_EQ(world.waits_of(2), 0) << "lost";
  world.look(2000ms, "2:ddkk");
  EXPECT_EQ(world.waits_of(2), 0.15);
  // The way itself says that the last news were lost.
  world.look(1000ms, "2:gakk", false);
  world.node.forget();
  world.look(1000ms, "2:gakk");
  EXPECT_EQ(world.waits_of(2), 0.3);
}

// The leader reads a board once a second, and sees the last news only.
TEST(WorldWaits, NewsThatReplaceOthersHaveTheSharesToo) {
  TwoNodes world;
  world.look(0ms, "2:aakk", false);
  std::string board;
  for (int at = 1; at <= 2; ++at) {
    world.now += 900ms;
    world.fold.groups[0].key = static_cast<std::uint64_t>(at) + 1;  // a rank does something else
    const auto news = world.node.feed(world.fold, {.waits = "2:ddkk"}, world.now);
    ASSERT_TRUE(news);
    board = print_news(*news);
  }
  world.leader.hear(1, board, world.now);
  EXPECT_EQ(world.waits_of(2), 0) << "the shares that were told first";
}

TEST(WorldWaits, SharesOfWaitsAreKnownOfAllNodesOrNothingIsSaid) {
  TwoNodes world;
  EXPECT_FALSE(world.leader.waits("0:kkkk", world.now)) << "a node that has told nothing";
  world.look(0ms, "2:--kk");
  EXPECT_FALSE(world.leader.waits("0:kkkk", world.now)) << "a rank that began a moment ago";
  world.look(10s, "2:aakk");
  EXPECT_EQ(world.leader.waits("0:kkkk", world.now)->size(), 4U);
  EXPECT_FALSE(world.leader.waits("0:--kk", world.now));
  EXPECT_FALSE(world.leader.waits("0:kkkk", world.now + 5s)) << "a silent node";
  TwoNodes older;
  older.look(0ms, "");
  EXPECT_EQ(older.leader.waits("0:kkkk", older.now)->size(), 2U) << "it tells no shares";
  older.leader.hear(1, R"({"number":1,"waits":"2:zz"})", older.now);
  older.leader.hear(1, R"({"number":1,"waits":7})", older.now);
  older.leader.hear(1, R"({"number":1,"waits":"3:aaaaaa"})", older.now);
  EXPECT_EQ(older.leader.waits("0:kkkk", older.now)->size(), 3U) << "foreign news are bounded";
}

}  // namespace
}  // namespace lockstep::looks
