#include "rent/sweep.h"

#include "rent/fake_world_testing.h"

#include <gtest/gtest.h>

#include <string>

namespace lockstep::rent {
namespace {

using SweepTest = testing::FakeWorld;

TEST_F(SweepTest, AMachineWithoutARentalIsTerminatedAndOneOfAnotherOwnerIsNot) {
  const cloud::Rental rental = rented("a");
  one->machines.push_back(
      {.id = "i-left", .region = "r1", .intent = "gone", .owner = rental.owner});
  one->machines.back().state = cloud::Machine::State::running;
  one->machines.push_back({.id = "i-foreign", .region = "r1", .intent = "x", .owner = "y"});
  one->machines.back().state = cloud::Machine::State::running;
  const auto swept = sweep_now(*world, {});
  ASSERT_TRUE(swept);
  ASSERT_EQ(swept->ended.size(), 1U);
  EXPECT_EQ(swept->ended[0].machine.id, "i-left");
  EXPECT_EQ(swept->foreign.size(), 1U);
  ASSERT_EQ(one->machines.size(), 2U);
  EXPECT_EQ(one->machines[0].id, "i-a");
}

TEST_F(SweepTest, AfterACleanSweepAMinuteIsWithoutOneUnlessSomethingIsLaunched) {
  const auto sweeps = [this](Sweep::When when) {
    const int before = one->lists;
    EXPECT_TRUE(Sweep(*world, when).finish());
    return one->lists - before;
  };
  EXPECT_EQ(sweeps(Sweep::When::due), 1);
  EXPECT_EQ(sweeps(Sweep::When::due), 0);
  EXPECT_EQ(sweeps(Sweep::When::always), 1);
  forget_clean_sweep(*world);
  EXPECT_EQ(sweeps(Sweep::When::due), 1);
  web->now += 61'000;
  EXPECT_EQ(sweeps(Sweep::When::due), 1);
  two->has_keys = true;  // the last sweep has not asked this provider
  EXPECT_EQ(sweeps(Sweep::When::due), 1);
}

}  // namespace
}  // namespace lockstep::rent
