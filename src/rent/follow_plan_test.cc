#include "rent/follow_plan.h"

#include <gtest/gtest.h>

namespace lockstep::rent {
namespace {

using Stage = cloud::RentedJob::Stage;

constexpr std::int64_t kBegin = 1'800'000'000'000;
constexpr std::int64_t kSecond = 1'000;
constexpr GuardPace kFollowPace;

struct FollowPlan : ::testing::Test {
  FollowPlan() {
    rental.id = job.rental = "abc";
    job.stage = Stage::working;
  }
  FollowStep at(std::int64_t seconds, bool claimed = false) {
    return follow_step(job, rental, claimed, tries, kBegin + seconds * kSecond, kFollowPace);
  }

  cloud::Rental rental;
  cloud::RentedJob job;
  FollowTries tries;
};

TEST_F(FollowPlan, AJobThatHasNotEndedAndIsNobodysIsFollowed) {
  for (const Stage stage : {Stage::renting, Stage::working, Stage::lost}) {
    job.stage = stage;
    tries = {};
    EXPECT_EQ(at(0), FollowStep::start);
  }
}

TEST_F(FollowPlan, WhatSomebodyHasOrWhatIsOverIsLeft) {
  EXPECT_EQ(at(0, true), FollowStep::leave);
  job.stage = Stage::ended;
  EXPECT_EQ(at(1), FollowStep::leave);
  job.stage = Stage::working;
  rental.closed_ms = kBegin;
  EXPECT_EQ(at(1), FollowStep::leave);
  EXPECT_EQ(tries.starts, 0);
}

TEST_F(FollowPlan, FollowersThatEndAreStartedAgainWithGrowingPausesAndNotForEver) {
  std::vector<std::int64_t> starts;
  std::int64_t second = 0;
  FollowStep step = FollowStep::leave;
  for (; second < 3600 && step != FollowStep::give_up; ++second) {
    step = at(second);
    if (step == FollowStep::start) starts.push_back(second);
  }
  EXPECT_EQ(starts, (std::vector<std::int64_t>{0, 10, 30, 70, 150, 310, 610, 910}));
  EXPECT_EQ(second - 1, 1210);
}

TEST_F(FollowPlan, OneThatHasLivedForLongIsNoPartOfARowOfFailures) {
  for (std::int64_t second = 0; second < 400; ++second)
    (void)at(second);
  EXPECT_EQ(tries.starts, 6);
  EXPECT_EQ(at(400, true), FollowStep::leave);
  EXPECT_EQ(tries.starts, 6);
  EXPECT_EQ(at(310 + 1200, true), FollowStep::leave);
  EXPECT_EQ(at(310 + 1201), FollowStep::start);
  EXPECT_EQ(tries.starts, 1);
}

TEST_F(FollowPlan, AClockThatWasSetBackKeepsNobodyWaiting) {
  EXPECT_EQ(at(9'000), FollowStep::start);
  EXPECT_EQ(at(0), FollowStep::start);
}

TEST_F(FollowPlan, TheJobOfARentalIsTheOneThatHasNotEnded) {
  cloud::RentedJob ended = job;
  ended.stage = Stage::ended;
  cloud::RentedJob other = job;
  other.rental = "another";
  EXPECT_EQ(unended_job({ended, other}, rental), nullptr);
  const std::vector<cloud::RentedJob> jobs = {other, job};
  EXPECT_EQ(unended_job(jobs, rental), &jobs[1]);
}

}  // namespace
}  // namespace lockstep::rent
