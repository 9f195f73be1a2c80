#include "slurm/bad_nodes.h"

#include <gtest/gtest.h>

namespace lockstep::slurm {
namespace {

constexpr std::int64_t kNow = 1'795'374'000;
constexpr std::int64_t kDay = kHalfLife;

std::vector<std::string> names(const std::vector<BadNode>& nodes) {
  std::vector<std::string> all;
  all.reserve(nodes.size());
  for (const BadNode& each : nodes)
    all.push_back(each.node);
  return all;
}

TEST(BadNodes, ANodeIsLeftOutForADayAfterAFailure) {
  const std::vector<NodeFailure> failures = {{"hpc", "n2", kNow, 1, "power cut"}};
  const auto bad = bad_nodes(failures, "hpc", kNow);
  ASSERT_EQ(names(bad), std::vector<std::string>{"n2"});
  EXPECT_EQ(bad[0].cause, "power cut");
  EXPECT_EQ(bad[0].back_at, kNow + kDay);
  EXPECT_EQ(names(bad_nodes(failures, "hpc", kNow + kDay - 60)), std::vector<std::string>{"n2"});
  EXPECT_TRUE(bad_nodes(failures, "hpc", kNow + kDay + 60).empty());
  EXPECT_TRUE(bad_nodes(failures, "other", kNow).empty());
}

TEST(BadNodes, WhoFailsAgainStaysOutLonger) {
  const std::vector<NodeFailure> twice = {{"hpc", "n2", kNow - kDay, 1, "first"},
                                          {"hpc", "n2", kNow, 1, "second"}};
  const auto bad = bad_nodes(twice, "hpc", kNow);
  ASSERT_EQ(bad.size(), 1U);
  EXPECT_DOUBLE_EQ(bad[0].weight, 1.5);
  EXPECT_EQ(bad[0].cause, "second");
  EXPECT_GT(bad[0].back_at, kNow + kDay * 3 / 2);
  const std::vector<NodeFailure> often(1000, {"hpc", "n2", kNow, 1, "x"});
  EXPECT_EQ(bad_nodes(often, "hpc", kNow).at(0).back_at, kNow + 4 * kDay);
}

TEST(BadNodes, ASmallSuspicionAloneExcludesNobody) {
  EXPECT_TRUE(bad_nodes({{"hpc", "n2", kNow, 0.3, "slow"}}, "hpc", kNow).empty());
  EXPECT_EQ(
      bad_nodes({{"hpc", "n2", kNow, 0.3, "slow"}, {"hpc", "n2", kNow, 0.3, "slow"}}, "hpc", kNow)
          .size(),
      1U);
}

TEST(BadNodes, ATimeInTheFutureCountsAsNow) {
  const auto bad = bad_nodes({{"hpc", "n2", kNow + 10 * kDay, 1, "x"}}, "hpc", kNow);
  ASSERT_EQ(bad.size(), 1U);
  EXPECT_DOUBLE_EQ(bad[0].weight, 1);
}

TEST(BadNodes, LinesAreReadBack) {
  const NodeFailure failure{"hpc", "n2", kNow, 0.5, "prolog\tfailed\nbadly"};
  const auto read = parse_failures(failure_line(failure) + failure_line({"hpc", "n3", 1, 1, ""}));
  ASSERT_EQ(read.size(), 2U);
  EXPECT_EQ(read[0].node, "n2");
  EXPECT_EQ(read[0].time, kNow);
  EXPECT_DOUBLE_EQ(read[0].weight, 0.5);
  EXPECT_EQ(read[0].cause.find('\n'), std::string::npos);
  EXPECT_EQ(read[1].cause, "");
}

TEST(BadNodes, LinesThatMakeNoSenseArePassedOver) {
  for (const char* text :
       {"", "\n\n", "x\t1\ta\tb\tc\n", "1\tnan\ta\tb\tc\n", "1\t-1\ta\tb\tc\n", "1\t1e9\ta\tb\tc\n",
        "1\t1\ta\t\tc\n", "1\t1\ta\tb\n", "-5\t1\ta\tb\tc\n", "1\t1\ta\tb\tc\td\n"})
    EXPECT_TRUE(parse_failures(text).empty()) << text;
  std::string many;
  for (std::size_t i = 0; i < kMostFailures + 10; ++i)
    many += failure_line({"hpc", "n" + std::to_string(i), kNow, 1, ""});
  const auto read = parse_failures(many);
  EXPECT_EQ(read.size(), kMostFailures);
  EXPECT_EQ(read.front().node, "n10");
}

TEST(BadNodes, WhatIsForgottenOrOldGoes) {
  const std::vector<NodeFailure> failures = {{"hpc", "n2", kNow, 1, ""},
                                             {"other", "n2", kNow, 1, ""},
                                             {"hpc", "n3", kNow, 1, ""},
                                             {"hpc", "n4", kNow - 7 * kDay, 1, ""}};
  const auto kept = still_needed(failures, "hpc", {"n2"}, kNow);
  ASSERT_EQ(kept.size(), 2U);
  EXPECT_EQ(kept[0].cluster, "other");
  EXPECT_EQ(kept[1].node, "n3");
}

}  // namespace
}  // namespace lockstep::slurm
