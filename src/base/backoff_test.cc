#include "base/backoff.h"

#include <gtest/gtest.h>

#include <vector>

namespace lockstep {
namespace {

using std::chrono::milliseconds;

std::vector<std::int64_t> pauses(Backoff backoff, int count) {
  std::vector<std::int64_t> all;
  all.reserve(static_cast<std::size_t>(count));
  for (int i = 0; i < count; ++i)
    all.push_back(backoff.next().count());
  return all;
}

TEST(Backoff, PausesGrowUpToTheLongest) {
  EXPECT_EQ(pauses(Backoff({milliseconds(500), milliseconds(3000)}), 5),
            (std::vector<std::int64_t>{500, 1000, 2000, 3000, 3000}));
  EXPECT_EQ(pauses(Backoff({milliseconds(5), milliseconds(20), 150}), 6),
            (std::vector<std::int64_t>{5, 7, 10, 15, 20, 20}));
  EXPECT_EQ(pauses(Backoff({milliseconds(50), milliseconds(10)}), 2),
            (std::vector<std::int64_t>{10, 10}));
}

TEST(Backoff, ManyTriesDoNotOverflow) {
  EXPECT_EQ(pauses(Backoff({milliseconds(500), milliseconds(20'000)}), 10'000).back(), 20'000);
}

TEST(Backoff, AResetBeginsAnew) {
  Backoff backoff({milliseconds(1), milliseconds(100)});
  (void)backoff.next();
  EXPECT_EQ(backoff.next().count(), 2);
  backoff.reset();
  EXPECT_EQ(backoff.next().count(), 1);
}

TEST(Backoff, ARandomPartIsAtLeastAnEighth) {
  Backoff backoff({milliseconds(800), milliseconds(10'000)});
  EXPECT_EQ(backoff.next(0).count(), 100);
  EXPECT_EQ(backoff.next(255).count(), 1600);
  const auto part = backoff.next(100).count();
  EXPECT_GT(part, 3200 / 8);
  EXPECT_LT(part, 3200);
}

}  // namespace
}  // namespace lockstep
