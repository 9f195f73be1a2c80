#include "agent/rank_list.h"

#include <gtest/gtest.h>

#include <climits>
#include <vector>

namespace lockstep::agent {
namespace {

TEST(RankList, NeighboursAreFoldedAndHostsGoByTheirLowestRank) {
  const std::vector<RankOnHost> workers = {{9, "a"}, {2, "b"}, {0, "b"}, {1, "b"},
                                           {4, "b"}, {8, "a"}, {3, "c"}};
  EXPECT_EQ(rank_list(workers), "ranks 0-2, 4 on b; rank 3 on c; ranks 8-9 on a");
  EXPECT_EQ(rank_list(workers, 1), "ranks 0-2, 4 on b and 3 more workers on 2 more hosts");
  EXPECT_EQ(rank_list({}), "");
}

TEST(RankList, WhateverOtherNodesSayItStaysOneShortLine) {
  std::vector<RankOnHost> workers = {{INT_MAX, "a"}, {INT_MIN, "a"}, {INT_MIN, "a"}};
  EXPECT_EQ(rank_list(workers), "ranks -2147483648, -2147483648, 2147483647 on a");
  for (int rank = 0; rank < 4000; rank += 2)
    workers.push_back({rank, "a"});
  EXPECT_LT(rank_list(workers).size(), 500U);
}

}  // namespace
}  // namespace lockstep::agent
