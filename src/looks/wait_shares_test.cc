#include "looks/wait_shares.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace lockstep::looks {
namespace {

// A minute of looks, of which the last `waits` found a wait, and so many no stack.
RankShares minute_of(int rank, int waits, int blind = 0) {
  RankShares shares{.rank = rank};
  for (int look = 0; look < RankShares::kWindow; ++look)
    shares.add(look >= RankShares::kWindow - waits, false, look < blind);
  return shares;
}

TEST(WaitShares, AreTwoBytesARankAndReadAgain) {
  const std::vector<RankShares> ranks = {minute_of(8, 0), minute_of(9, 60), minute_of(10, 29)};
  const std::string text = waits_text(ranks, 10);
  EXPECT_EQ(text, "8:aauuKk");
  const auto waits = read_waits(text, 11);
  ASSERT_TRUE(waits);
  EXPECT_FALSE(waits->incomplete);
  EXPECT_EQ(waits->ranks.at(8), WaitShare{});
  EXPECT_EQ(waits->ranks.at(9), (WaitShare{.waits = 1, .longest = 1}));
  EXPECT_EQ(waits->ranks.at(10), (WaitShare{.waits = 0.5, .longest = 0.5, .late = true}));
  EXPECT_EQ(waits_text({}, {}), "");
}

TEST(WaitShares, AWaitIsRoundedUpAndAShareToTheNearest) {
  RankShares shares;
  for (int look = 0; look < RankShares::kWindow; ++look)
    shares.add(look % 15 == 0 || look % 15 == 1, false);  // 8 of 60: 13 %
  EXPECT_EQ(shares.longest_wait(), 2);
  EXPECT_EQ(waits_text({&shares, 1}, {}), "0:db");
}

TEST(WaitShares, RanksThatAreNotKnownHaveNone) {
  std::vector<RankShares> ranks = {minute_of(0, 30), minute_of(1, 0, 4)};
  ranks.push_back({.rank = 2});
  EXPECT_EQ(waits_text(ranks, {}), "0:kk..--");
  const auto waits = read_waits("0:kk..--", 3);
  ASSERT_TRUE(waits);
  EXPECT_EQ(waits->ranks.size(), 1U) << "a rank without a stack is not a slow one";
  EXPECT_TRUE(waits->incomplete);
}

TEST(WaitShares, ARankThatHasEndedLeavesItsPlace) {
  const std::vector<RankShares> ranks = {minute_of(4, 30), minute_of(7, 0)};
  const std::string text = waits_text(ranks, 7);
  EXPECT_EQ(text, "4:kk....Aa");
  const auto waits = read_waits(text, 8);
  ASSERT_TRUE(waits);
  EXPECT_FALSE(waits->incomplete);
  EXPECT_EQ(waits->ranks.size(), 2U);
  EXPECT_TRUE(waits->ranks.at(7).late);
}

TEST(WaitShares, ForeignTextsAreBounded) {
  for (const char* bad : {"", ":", "8", "8:a", "8:avv", "x:aa", "-1:aa", "8:aA", "8:a\x01", "8:{}",
                          "99999999999999999999:aa", "17:aa"})
    EXPECT_FALSE(read_waits(bad, 16)) << bad;
  EXPECT_FALSE(read_waits("0:" + std::string(kMostWaitNews, 'a'), 1 << 20));
  EXPECT_TRUE(read_waits("15:aaaa", 16)->ranks.contains(15));
  EXPECT_EQ(read_waits("15:aaaa", 16)->ranks.size(), 1U) << "ranks that the job does not have";
  EXPECT_TRUE(read_waits("0:", 16)->ranks.empty());
}

}  // namespace
}  // namespace lockstep::looks
