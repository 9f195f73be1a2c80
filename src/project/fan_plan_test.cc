#include "project/fan_plan.h"

#include <gtest/gtest.h>

namespace lockstep::project {
namespace {

constexpr std::uint64_t kMuch = kWorthAFan + 1;
using Places = std::vector<std::size_t>;

TEST(FanPlan, TheFirstThatNeedsMuchIsTheSeedOfAllOthersThatDo) {
  const auto plan = plan_fan({{0}, {kMuch}, {kWorthAFan}, {kMuch}, {2 * kMuch}});
  ASSERT_TRUE(plan);
  EXPECT_EQ(plan->seed, 1U);
  EXPECT_EQ(plan->takers, (Places{3, 4}));
}

TEST(FanPlan, ThereIsNoneForALittleOrForOneHost) {
  EXPECT_FALSE(plan_fan({}));
  EXPECT_FALSE(plan_fan({{kMuch}}));
  EXPECT_FALSE(plan_fan({{kMuch}, {kWorthAFan}, {0}}));
  EXPECT_FALSE(plan_fan({{kWorthAFan}, {kWorthAFan}}));
}

TEST(FanPlan, ThisMachineTakesNoPart) {
  EXPECT_FALSE(plan_fan({{kMuch, true}, {kMuch}}));
  const auto plan = plan_fan({{kMuch, true}, {kMuch}, {kMuch}});
  ASSERT_TRUE(plan);
  EXPECT_EQ(plan->seed, 1U);
  EXPECT_EQ(plan->takers, Places{2});
}

}  // namespace
}  // namespace lockstep::project
