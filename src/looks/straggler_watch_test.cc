#include "looks/straggler_watch.h"

#include <gtest/gtest.h>

#include <vector>

namespace lockstep::looks {
namespace {

class Watched {
 public:
  // A look at four ranks. slow: never waits, while the others wait at every second look. -1: none.
  StragglerWatch::News look(int slow, const Verdict& verdict = trains()) {
    ++count_;
    for (RankShares& rank : ranks_)
      rank.add(rank.rank != slow && count_ % 2 == 0, false);
    return watch.feed(ranks_, verdict);
  }
  static Verdict trains() {
    Verdict verdict;
    verdict.state = VerdictState::training;
    return verdict;
  }

  StragglerWatch watch;

 private:
  std::vector<RankShares> ranks_ = {{.rank = 0}, {.rank = 1}, {.rank = 2}, {.rank = 3}};
  int count_ = 0;
};

TEST(StragglerWatch, TellsAStragglerOnceAndItsEnd) {
  Watched job;
  int told = 0;
  for (int i = 0; i < 100; ++i) {
    const auto news = job.look(2);
    if (news.begins) ++told;
    EXPECT_FALSE(news.ends);
    EXPECT_EQ(job.watch.current().has_value(), i >= 59) << "after a minute";
  }
  EXPECT_EQ(told, 1);
  EXPECT_EQ(job.watch.current()->rank, 2);
  int ended = 0;
  for (int i = 0; i < 40; ++i) {
    const auto news = job.look(-1);
    EXPECT_FALSE(news.begins);
    if (news.ends == 2) ++ended;
  }
  EXPECT_EQ(ended, 1);
  EXPECT_FALSE(job.watch.current());
}

TEST(StragglerWatch, ALongStandIsNoSlowness) {
  Watched job;
  Verdict waits;
  waits.state = VerdictState::waiting;
  waits.since = Millis(29'000);
  for (int i = 0; i < 59; ++i)
    EXPECT_FALSE(job.look(2, waits).forget) << "long steps stand a while";
  waits.since = kLongStand;
  const auto news = job.look(2, waits);
  EXPECT_TRUE(news.forget);
  EXPECT_FALSE(news.begins);
}

TEST(StragglerWords, NameTheRankItsNodeAndTheShares) {
  EXPECT_EQ(straggler_name(3, "n1", 7), "rank 3 (node n1, GPU 7)");
  EXPECT_EQ(straggler_name(3, "n1", {}), "rank 3 (node n1)");
  EXPECT_EQ(straggler_name(3, "", {}), "rank 3");
  EXPECT_EQ(straggler_words({.rank = 3, .share = 0.052, .others = 0.48}, "rank 3 (node n1)"),
            "rank 3 (node n1) makes the others wait: it waits 5 % of the time, the median 48 %");
}

}  // namespace
}  // namespace lockstep::looks
