#include "looks/step_book.h"

#include <gtest/gtest.h>

#include <chrono>
#include <string>

namespace lockstep::looks {
namespace {

const io::TimePoint kStart{};

TEST(StepBook, KnowsTheNewestStepAndTheRate) {
  StepBook book({});
  EXPECT_FALSE(book.of(0));
  book.feed(0, "loading the data", kStart);
  EXPECT_FALSE(book.of(0)) << "no step";
  book.feed(0, "step: 10 loss: 2.1", kStart + std::chrono::seconds(1));
  ASSERT_TRUE(book.of(0));
  EXPECT_EQ(book.of(0)->step, 10);
  EXPECT_FALSE(book.of(0)->per_s) << "one step has no rate";
  EXPECT_TRUE(book.of(0)->guessed);
  book.feed(0, "step: 20 loss: 2.0", kStart + std::chrono::seconds(3));
  book.feed(0, "saved checkpoint", kStart + std::chrono::seconds(4));
  EXPECT_EQ(book.of(0)->step, 20);
  EXPECT_DOUBLE_EQ(*book.of(0)->per_s, 5.0);
  EXPECT_FALSE(book.of(1));
}

TEST(StepBook, TheRateIsOfTheLastMinute) {
  StepBook book({});
  for (int i = 0; i < 1000; ++i)
    book.feed(0, "step: " + std::to_string(i), kStart + std::chrono::seconds(i));
  for (int i = 0; i < 100; ++i)
    book.feed(0, "step: " + std::to_string(1000 + 3 * i), kStart + std::chrono::seconds(1000 + i));
  EXPECT_DOUBLE_EQ(*book.of(0)->per_s, 3.0);
}

TEST(StepBook, AStepOfMinutesHasARate) {
  StepBook book({});
  for (int i = 0; i < 4; ++i)
    book.feed(0, "step: " + std::to_string(i), kStart + std::chrono::seconds(200 * i));
  EXPECT_DOUBLE_EQ(*book.of(0)->per_s, 1 / 200.0);
}

TEST(StepBook, ASmallerStepBeginsANewCount) {
  StepBook book({});
  book.feed(0, "step: 90", kStart);
  book.feed(0, "step: 99", kStart + std::chrono::seconds(9));
  book.feed(0, "step: 1", kStart + std::chrono::seconds(10));
  EXPECT_EQ(book.of(0)->step, 1);
  EXPECT_FALSE(book.of(0)->per_s);
}

TEST(StepBook, APatternOfTheUserIsNoGuess) {
  auto pattern = logs::StepPattern::make("batch ([0-9]+)");
  ASSERT_TRUE(pattern);
  StepBook book(std::move(*pattern));
  book.feed(0, "step: 5 batch 70", kStart);
  EXPECT_EQ(book.of(0)->step, 70);
  EXPECT_FALSE(book.of(0)->guessed);
  book.feed(0, "epoch 1.5 step: 6", kStart + std::chrono::seconds(1));
  EXPECT_EQ(book.of(0)->step, 70) << "only the pattern counts";
  book.clear();
  EXPECT_FALSE(book.of(0));
}

}  // namespace
}  // namespace lockstep::looks
