#include "rent/rental_locks.h"

#include "base/error_testing.h"
#include "rent/fake_world_testing.h"

#include <gtest/gtest.h>

namespace lockstep::rent {
namespace {

using RentalLocksTest = testing::FakeWorld;

TEST_F(RentalLocksTest, AClusterIsChangedByOneProcessAtATime) {
  RentalLocks other(folder + "/lockstep");
  ASSERT_TRUE(world->locks().take("a"));
  const Status refused = other.take("a");
  ASSERT_FALSE(refused);
  EXPECT_EQ(code_of(refused), Errc::unavailable);
  EXPECT_TRUE(other.take("b"));
  world->locks().release("a");
  EXPECT_TRUE(other.take("a"));
  EXPECT_FALSE(world->locks().take("a"));
}

TEST_F(RentalLocksTest, AHolderOfTheAccountThatHangsIsNotWaitedForForever) {
  RentalLocks other(folder + "/lockstep");
  auto held = other.take_account(*web);
  ASSERT_TRUE(held && *held);
  const std::int64_t began = web->now;
  const auto late = world->locks().take_account(*web);
  ASSERT_TRUE(late);
  EXPECT_FALSE(*late);
  EXPECT_EQ(web->now - began, 60'000);
  held->reset();
  const auto free = world->locks().take_account(*web);
  EXPECT_TRUE(free && *free);
}

TEST_F(RentalLocksTest, TheUserMayStopTheWaitForTheAccount) {
  RentalLocks other(folder + "/lockstep");
  const auto held = other.take_account(*web);
  web->pauses_left = 3;
  EXPECT_EQ(code_of(world->locks().take_account(*web)), Errc::canceled);
}

}  // namespace
}  // namespace lockstep::rent
