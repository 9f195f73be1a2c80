#include "looks/straggler.h"

#include "looks/look_book.h"
#include "looks/looks_testing.h"

#include <gtest/gtest.h>

#include <random>

namespace lockstep::looks {
namespace {

// Ranks of a training, looked at once a second at the same moment. A step takes 1; the time until
// the collective differs by a bit in each step, and the slow rank is late by `late`.
class Steps {
 public:
  Steps(int ranks, unsigned seed) : random_(seed), ranks_(ranks) {}

  void look(int slow, double late) {
    const double longest = 1 + late;
    const double moment = std::uniform_real_distribution<double>(0, longest + 0.1)(random_);
    for (int rank = 0; rank < ranks_; ++rank) {
      const double noise = std::normal_distribution<double>(0, 0.01)(random_);
      const double enters = 1 + noise + (rank == slow ? late : 0);
      book_.add(rank, {.doing = moment > enters ? Doing::collective : Doing::own_code}, false);
    }
  }
  std::optional<Straggler> straggler() const { return find_straggler(book_.shares()); }

 private:
  std::mt19937 random_;
  int ranks_;
  ShareBook book_;
};

TEST(Straggler, RankThatNeverWaitsIsNamedAfterAMinuteAndWithdrawn) {
  Steps steps(8, 1);
  for (int i = 0; i < 59; ++i)
    steps.look(5, 0.5);
  EXPECT_FALSE(steps.straggler());
  steps.look(5, 0.5);
  const auto found = steps.straggler();
  ASSERT_TRUE(found);
  EXPECT_EQ(found->rank, 5);
  EXPECT_LT(found->share, 0.15);
  EXPECT_GT(found->others, 0.25);
  for (int i = 0; i < 25; ++i)
    steps.look(-1, 0);
  EXPECT_FALSE(steps.straggler());
}

TEST(Straggler, RightRankForEachDelayAboveAFifth) {
  for (const double late : {0.3, 0.5, 1.0}) {
    int right = 0;
    for (unsigned seed = 0; seed < 20; ++seed) {
      Steps steps(8, seed);
      bool named = false;
      for (int i = 0; i < 180; ++i) {
        steps.look(2, late);
        if (const auto found = steps.straggler()) {
          EXPECT_EQ(found->rank, 2);
          named = true;
        }
      }
      right += named ? 1 : 0;
    }
    EXPECT_EQ(right, 20) << late;
  }
}

TEST(Straggler, EvenRanksAreNotAccused) {
  int named = 0;
  for (unsigned seed = 0; seed < 10; ++seed) {
    Steps steps(8, seed);
    for (int i = 0; i < 3600; ++i) {
      steps.look(-1, 0);
      named += steps.straggler() ? 1 : 0;
    }
  }
  EXPECT_EQ(named, 0);
}

TEST(Straggler, OneLongWaitIsNone) {
  for (const int seconds : {8, 25}) {
    Steps steps(8, 1);
    for (int i = 0; i < 100; ++i)
      steps.look(-1, 0);
    for (int i = 0; i < seconds; ++i)
      steps.look(0, 1000);  // a checkpoint
    for (int i = 0; i < 60; ++i) {
      EXPECT_FALSE(steps.straggler()) << seconds << " s, " << i;
      steps.look(-1, 0);
    }
  }
}

TEST(Straggler, LongStepsOfASlowRankAreNoLongWait) {
  ShareBook book;
  for (int look = 0; look < 80; ++look)
    for (int rank = 0; rank < 8; ++rank)
      // Steps of 20 s, of which the others wait 10.
      book.add(rank, {.doing = rank != 3 && look % 20 >= 10 ? Doing::collective : Doing::own_code},
               false);
  const auto found = find_straggler(book.shares());
  ASSERT_TRUE(found);
  EXPECT_EQ(found->rank, 3);
}

// Looks at several nodes are not of the same moment, so the ranks' bits have nothing in common.
TEST(Straggler, ChanceAloneAccusesHardlyAnybody) {
  for (const unsigned share : {3U, 5U}) {
    std::mt19937 random(3);
    int named = 0;
    for (int run = 0; run < 200; ++run) {
      std::vector<RankShares> ranks(8);
      for (RankShares& rank : ranks)
        for (int i = 0; i < RankShares::kWindow; ++i)
          rank.add(random() % 10 < share, false);
      named += find_straggler(ranks) ? 1 : 0;
    }
    EXPECT_LE(named, 4) << share;
  }
}

TEST(Straggler, OneRankOrNoLooksNameNobody) {
  EXPECT_FALSE(find_straggler({}));
  Steps alone(1, 1);
  for (int i = 0; i < 100; ++i)
    alone.look(0, 0.5);
  EXPECT_FALSE(alone.straggler());
}

TEST(Shares, CountTheLastMinute) {
  RankShares shares;
  EXPECT_EQ(shares.wait_share(), 0);
  for (int i = 0; i < 30; ++i)
    shares.add(true, false);
  EXPECT_EQ(shares.wait_share(), 1);
  for (int i = 0; i < 45; ++i)
    shares.add(false, i % 3 == 0);
  EXPECT_EQ(shares.looks, 60);
  EXPECT_DOUBLE_EQ(shares.wait_share(), 0.25);
  EXPECT_DOUBLE_EQ(shares.input_share(), 0.25);
}

TEST(Shares, BackwardWaitsOnlyWhileItsThreadSleeps) {
  EXPECT_TRUE(waits_now({.doing = Doing::backward}, false));
  EXPECT_FALSE(waits_now({.doing = Doing::backward}, true));
  auto frames = in_backward();
  EXPECT_TRUE(waits_now(what_doing(stack_of(frames)), false));
  frames.insert(frames.begin(), {"apply", kTorch + "autograd/function.py", 307});
  EXPECT_TRUE(waits_now(what_doing(stack_of(frames)), false));
  frames.insert(frames.begin(), {"Slow.backward", "/home/u/model.py", 41});
  EXPECT_FALSE(waits_now(what_doing(stack_of(frames)), false)) << "sleeps in a hook of its own";
  EXPECT_TRUE(waits_now({.doing = Doing::collective}, true));
  EXPECT_FALSE(waits_now({.doing = Doing::data_loader}, false));
}

TEST(LookBook, ARankThatHasEndedHasNoShares) {
  LookBook book("n1", std::chrono::seconds(1));
  std::vector<RankLook> looks = {{.rank = 0, .pid = 100}, {.rank = 1, .pid = 101}};
  for (RankLook& look : looks)
    look.process = asleep('S', "futex_do_wait");
  book.feed(looks, io::TimePoint{});
  EXPECT_EQ(book.shares().size(), 2U);
  looks[0].process.reset();
  book.feed(looks, io::TimePoint{} + std::chrono::seconds(1));
  ASSERT_EQ(book.shares().size(), 1U);
  EXPECT_EQ(book.shares()[0].rank, 1);
}

}  // namespace
}  // namespace lockstep::looks
