#include "base/error_testing.h"
#include "launch/launch_testing.h"

#include <gtest/gtest.h>

namespace lockstep::launch {
namespace {

Result<LaunchConfig> made(const std::string& after, const std::string& then, int restarts = 1) {
  RawOptions raw;
  raw.script = "T";
  raw.hang_after = after;
  raw.on_hang = then;
  raw.max_restarts = restarts;
  return make_launch_config(raw, Machine().facts());
}

TEST(HangRule, ReadsWhenAJobCountsAsHung) {
  EXPECT_EQ(made("auto", "report")->hang.after, HangConfig::After::automatic);
  EXPECT_EQ(made("off", "report")->hang.after, HangConfig::After::never);
  const auto given = made("7.5", "restart");
  ASSERT_TRUE(given);
  EXPECT_EQ(given->hang.after, HangConfig::After::given);
  EXPECT_EQ(given->hang.limit.count(), 7500);
  EXPECT_EQ(given->hang.then, HangConfig::Then::restart);
  EXPECT_EQ(made("2", "end")->hang.then, HangConfig::Then::end);
}

TEST(HangRule, APatternOfStepsIsChecked) {
  RawOptions raw;
  raw.script = "T";
  EXPECT_FALSE(make_launch_config(raw, Machine().facts())->progress);
  raw.progress = "batch ([0-9]+)";
  const auto config = make_launch_config(raw, Machine().facts());
  ASSERT_TRUE(config && config->progress);
  EXPECT_EQ(config->progress->match("batch 7")->step, 7);
  raw.progress = "batch (";
  EXPECT_EQ(code_of(make_launch_config(raw, Machine().facts())), Errc::invalid_input);
}

TEST(HangRule, RefusesWhatCannotBeMeant) {
  for (const char* wrong : {"", "1", "0", "-3", "nan", "inf", "1e12", "soon", "AUTO"}) {
    const auto refused = made(wrong, "report");
    ASSERT_FALSE(refused) << wrong;
    EXPECT_NE(refused.error().message.find("--hang-after must be auto, off"), std::string::npos);
  }
  EXPECT_NE(made("auto", "kill").error().message.find("got kill"), std::string::npos);
  EXPECT_NE(made("off", "end").error().message.find("needs a watch"), std::string::npos);
  EXPECT_NE(made("auto", "restart", 0).error().message.find("--max-restarts is 0"),
            std::string::npos);
}

}  // namespace
}  // namespace lockstep::launch
