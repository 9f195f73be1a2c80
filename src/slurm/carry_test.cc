#include "slurm/carry.h"

#include <gtest/gtest.h>

namespace lockstep::slurm {
namespace {

TEST(CarryTest, AFolderThatTwoHostsSeeIsShared) {
  EXPECT_FALSE(is_carried(Carry::unless_seen, "n1", "login"));
  EXPECT_TRUE(is_carried(Carry::unless_seen, "n1", "n1"));
  EXPECT_TRUE(is_carried(Carry::unless_seen, "n1", ""));
}

TEST(CarryTest, WhatTheUserHasSaidHolds) {
  EXPECT_TRUE(is_carried(Carry::always, "n1", "login"));
  EXPECT_FALSE(is_carried(Carry::no, "n1", "n1"));
}

}  // namespace
}  // namespace lockstep::slurm
