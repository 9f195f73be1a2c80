#include "logs/step_line.h"

#include <gtest/gtest.h>

#include <ctime>

namespace lockstep::logs {
namespace {

double step_in(std::string_view line) {
  const auto step = guessed_step(line);
  return step ? step->step : -1;
}

TEST(StepLines, AreGuessedFromKnownForms) {
  const auto tqdm = guessed_step(" 12%|#2        | 123/1000 [00:10<01:20, 11.0it/s, loss=2.1]");
  ASSERT_TRUE(tqdm);
  EXPECT_EQ(*tqdm, (StepLine{.step = 123, .total = 1000}));
  EXPECT_EQ(step_in("\r 1%| | 1/100 [00:01]\r 2%| | 2/100 [00:02<01:00, 1.0it/s]"), 2);
  EXPECT_EQ(step_in("Epoch 0:  12%|█▏        | 12/100 [00:01<00:09,  9.5it/s, v_num=3]"), 12);
  EXPECT_EQ(step_in("\x1b[32mEpoch 1: 100%|##| 1,234/1,234 [1:02:03<00:00]\x1b[0m"), 1234);
  const auto trainer = guessed_step("{'loss': 1.23, 'learning_rate': 5e-05, 'epoch': 0.5}");
  ASSERT_TRUE(trainer && trainer->is_epoch);
  EXPECT_DOUBLE_EQ(trainer->step, 0.5);
  EXPECT_EQ(step_in("{'loss': '1.2', 'step': '40', 'epoch': '0.50'}"), 40);
  const auto megatron = guessed_step(
      " [2026-11-26 14:00:00] iteration      100/     500 | consumed samples:  12800 | elapsed");
  ASSERT_TRUE(megatron);
  EXPECT_EQ(*megatron, (StepLine{.step = 100, .total = 500}));
  EXPECT_EQ(step_in("[titan] 2026-11-26 14:00:00,123 - root - INFO - step: 100  loss:  2.1"), 100);
  EXPECT_EQ(step_in("\x1b[31mstep: 1,100  \x1b[32mloss: 7.5"), 1100);
  EXPECT_EQ(step_in("[Epoch 0 Batch 12] loss 0.4"), 12);
  EXPECT_EQ(step_in("Step 7: loss=0.1"), 7);
  EXPECT_EQ(step_in("global_step=900 loss=1"), 900);
  EXPECT_EQ(step_in("Iter [50/1000] loss"), 50);
  EXPECT_EQ(step_in("training step 41\n"), 41);
}

TEST(StepLines, OtherLinesShowNone) {
  for (const char* line :
       {"", "hello", "step", "steps taken", "next step: download", "footstep 5", "step2 begins",
        "step 0.5 s", "it 5 works", "100%|####| 1.2G/3.4G [00:10<00:00, 90MB/s]", "50%| of all",
        "{'loss': 1.2}", "epoch 3", "batch size", "{}", "%|", "\x1b[", "\x1b", "step: -5"})
    EXPECT_EQ(step_in(line), -1) << line;
  EXPECT_EQ(step_in(std::string(100'000, '%') + "|"), -1);
  EXPECT_EQ(step_in("step " + std::string(1000, '9')), -1);
}

TEST(StepLines, AUsersPatternCounts) {
  const auto pattern = StepPattern::make("seen ([0-9,.]+) tokens");
  ASSERT_TRUE(pattern) << pattern.error().message;
  const auto step = step_of("have seen 1,000 tokens", *pattern);
  ASSERT_TRUE(step);
  EXPECT_EQ(*step, (StepLine{.step = 1000, .guessed = false}));
  EXPECT_FALSE(step_of("step 5", *pattern)) << "nothing is guessed beside a pattern";
  EXPECT_FALSE(pattern->match("seen ,., tokens"));
  EXPECT_FALSE(pattern->match(std::string("seen\0 1 tokens", 14)));
}

TEST(StepLines, BadPatternsAreRefused) {
  for (const char* wrong : {"", "step", "(", "step [0-9", "(a)\\1", "(a){3}", "a\nb"}) {
    const auto refused = StepPattern::make(wrong);
    ASSERT_FALSE(refused) << wrong;
    EXPECT_NE(refused.error().message.find("--progress"), std::string::npos);
  }
  EXPECT_FALSE(StepPattern::make("(" + std::string(300, 'a') + ")"));
  // Each of these would double the work.
  EXPECT_FALSE(StepPattern::make("((((((((a+)+)+)+)+)+)+)+)"));
  EXPECT_FALSE(StepPattern::make("(a)+*+*+*+*+*+*+"));
}

TEST(StepLines, AHostileLineTakesLittleTime) {
  const auto pattern = StepPattern::make("(a*)*(b*)*(a|b)*(aa|bb)*([0-9]+)");
  ASSERT_TRUE(pattern);
  const std::clock_t before = std::clock();  // of this process
  EXPECT_FALSE(pattern->match(std::string(1UL << 20, 'a')));
  EXPECT_LT((std::clock() - before) / CLOCKS_PER_SEC, 10) << "it takes milliseconds";
}

TEST(StepLines, AHostilePatternTakesLittleTime) {
  const std::clock_t before = std::clock();  // of this process
  const auto pattern = StepPattern::make("((((((" + std::string(220, 'a') + "+)+)+)+)+)+)");
  ASSERT_TRUE(pattern);
  EXPECT_TRUE(StepPattern::make("((((((.*.*.*.*.*.*+)+)+)+)+)+)"));
  EXPECT_FALSE(pattern->match(std::string(1UL << 20, 'a')));
  EXPECT_LT((std::clock() - before) / CLOCKS_PER_SEC, 10) << "it takes milliseconds";
}

}  // namespace
}  // namespace lockstep::logs
