#include "looks/redo_watch.h"

#include <gtest/gtest.h>

namespace lockstep::looks {
namespace {

bool redoes(RedoWatch& watch, std::int64_t step) {
  return watch.feed(StepBook::Steps{.step = step, .guessed = true}).redoes;
}

TEST(RedoWatch, StepsBelowTheHighestOfEarlierAttemptsAreRepeated) {
  RedoWatch watch;
  watch.attempt_started();
  EXPECT_FALSE(watch.feed({}).guessed) << "no step lines are known";
  for (const int step : {0, 10, 10, 20, 40})
    EXPECT_FALSE(redoes(watch, step));
  watch.attempt_started();
  EXPECT_FALSE(watch.feed({}).redoes) << "the ranks start";
  EXPECT_TRUE(redoes(watch, 20));
  EXPECT_TRUE(redoes(watch, 30));
  // Another restart before the job is where it was.
  watch.attempt_started();
  EXPECT_FALSE(watch.feed({}).redoes);
  EXPECT_TRUE(redoes(watch, 20));
  EXPECT_TRUE(redoes(watch, 39));
  EXPECT_FALSE(redoes(watch, 40));
  EXPECT_FALSE(redoes(watch, 50));
  EXPECT_EQ(watch.feed({}).guessed, true);
}

TEST(RedoWatch, ARestartThatGoesOnRepeatsNothing) {
  RedoWatch watch;
  watch.attempt_started();
  EXPECT_FALSE(redoes(watch, 40));
  watch.attempt_started();
  EXPECT_FALSE(redoes(watch, 40));
  EXPECT_FALSE(redoes(watch, 41));
  EXPECT_EQ(watch.feed(StepBook::Steps{.step = 42}).guessed, false) << "by a pattern of the user";
}

TEST(RedoWatch, CountsOfEpochsSayNothing) {
  RedoWatch watch;
  watch.attempt_started();
  EXPECT_FALSE(redoes(watch, 90));
  EXPECT_FALSE(redoes(watch, 3));
  EXPECT_FALSE(watch.feed({}).guessed);
  watch.attempt_started();
  EXPECT_FALSE(redoes(watch, 10)) << "it may be a step of the next epoch";
  EXPECT_FALSE(watch.feed({}).guessed);
}

}  // namespace
}  // namespace lockstep::looks
