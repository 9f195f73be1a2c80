#include "rows/last_step.h"

#include "io/fd.h"

#include <gtest/gtest.h>

#include <stdlib.h>
#include <unistd.h>

namespace lockstep::rows {
namespace {

TEST(LastStep, TheLastLineWithAStepCounts) {
  const auto step = last_step("step 1 loss 3\nstep 7: loss 0.31\nsaved\n", {});
  ASSERT_TRUE(step);
  EXPECT_EQ(*step, (LastStep{.step = 7, .line = "step 7: loss 0.31"}));
  EXPECT_FALSE(last_step("", {}));
  EXPECT_FALSE(last_step("\nhello\n", {}));
}

TEST(LastStep, ABarShowsItsLastPart) {
  const auto step = last_step("\r 10%|#  | 1/10 [00:01<00:09]\r 20%|## | 2/10 [00:02<00:08]", {});
  ASSERT_TRUE(step);
  EXPECT_EQ(step->step, 2);
  EXPECT_EQ(step->line, " 20%|## | 2/10 [00:02<00:08]");
}

TEST(LastStep, APatternReplacesTheGuess) {
  const auto pattern = logs::StepPattern::make("at ([0-9]+)");
  ASSERT_TRUE(pattern);
  const auto step = last_step("at 5\nstep 9\n", *pattern);
  ASSERT_TRUE(step);
  EXPECT_EQ(step->step, 5);
}

TEST(LastStep, ALongLineIsCut) {
  const auto pattern = logs::StepPattern::make("at ([0-9]+)");
  ASSERT_TRUE(pattern);
  const auto step = last_step("at 3 " + std::string(5000, 'x'), *pattern);
  ASSERT_TRUE(step);
  EXPECT_LE(step->line.size(), kMostStepLine + 3);
}

TEST(LastStep, OfTheOutputOfAllWorkersThoseOfTheFirstCount) {
  std::string path = "/tmp/lockstep-step-XXXXXX";
  const io::Fd file(mkstemp(path.data()));
  EXPECT_TRUE(io::write_file(path, "[rank0]: step 3 loss 1\n[rank1]: step 9\n[rank10]: step 8\n"));
  EXPECT_EQ(last_step_of_output(path, {}), (LastStep{.step = 3, .line = "step 3 loss 1"}));
  EXPECT_TRUE(io::write_file(path, "step 4\nsaved\n"));
  EXPECT_EQ(last_step_of_output(path, {}), (LastStep{.step = 4, .line = "step 4"}));
  unlink(path.c_str());
  EXPECT_FALSE(last_step_of_output(path, {}));
}

TEST(LastStep, AReportWithoutLogsHasNone) {
  EXPECT_FALSE(last_step_of_report(codec::parse_json("{}"), {}));
  EXPECT_FALSE(
      last_step_of_report(codec::parse_json(R"({"log_dir":"/nowhere","attempts_total":1})"), {}));
}

}  // namespace
}  // namespace lockstep::rows
