#include "jobs/rented/rented_state.h"

#include <gtest/gtest.h>

namespace lockstep::jobs::rented {
namespace {

using Stage = cloud::RentedJob::Stage;
using State = std::optional<JobState>;

class RentedStateTest : public ::testing::Test {
 protected:
  RentedStateTest() {
    course_.cluster = "gpus";
    course_.run_id = "aaaa1111-0000-4000-8000-000000000000";
    course_.job = "aaaa1111";
    course_.stage = Stage::working;
    job_ = {.id = "aaaa1111", .name = "train", .place = "gpus", .command = "train.py"};
  }
  State state() const { return state_in_course(job_, {course_}); }
  void lose_machines() {
    course_.stage = Stage::lost;
    course_.losses = 1;
    course_.job.clear();
  }

  cloud::RentedJob course_;
  KnownJob job_;
};

TEST_F(RentedStateTest, ARunningAttemptIsAskedOfItsMachines) {
  EXPECT_EQ(state(), std::nullopt);
  EXPECT_EQ(state_in_course(job_, {}), std::nullopt) << "hosts that were not rented";
}

TEST_F(RentedStateTest, AfterALossTheJobIsRestartingUntilItRunsAgain) {
  lose_machines();
  EXPECT_EQ(state(), JobState::restarting);
  course_.stage = Stage::renting;
  EXPECT_EQ(state(), JobState::restarting);
  course_.stage = Stage::working;
  EXPECT_EQ(state(), JobState::restarting) << "the project is brought there";
  job_.status = {.state = JobState::failed, .code = 143};
  EXPECT_EQ(state(), JobState::restarting) << "it has ended by itself, at the notice of the loss";
  job_.status = {.state = JobState::starting};
  course_.job = "aaaa1111";
  EXPECT_EQ(state(), std::nullopt) << "the next attempt has the same id";
}

// Renting may fail for good: nothing starts the job again.
TEST_F(RentedStateTest, ACourseThatGaveUpLeavesALostJob) {
  lose_machines();
  course_.stage = Stage::ending;
  EXPECT_EQ(state(), JobState::lost);
  job_.status.state = JobState::restarting;
  EXPECT_EQ(state_in_course(job_, {}), JobState::lost) << "its record is gone";
  course_.back = {"out"};
  job_.status = {.state = JobState::failed, .code = 143};
  EXPECT_EQ(state(), std::nullopt);
}

// The process of the course was killed while it began the job, and the next one cannot begin it.
TEST_F(RentedStateTest, AJobThatNeverBeganIsLostWithItsCourse) {
  job_.status = {.state = JobState::starting};
  course_.job.clear();
  EXPECT_EQ(state(), std::nullopt);
  course_.stage = Stage::ending;
  EXPECT_EQ(state(), JobState::lost);
}

TEST_F(RentedStateTest, AnEndedJobIsSavingWhileItsOutputsComeBack) {
  job_.status = {.state = JobState::succeeded, .code = 0};
  EXPECT_EQ(state(), std::nullopt) << "nothing is to be brought";
  course_.back = {"out"};
  EXPECT_EQ(state(), JobState::saving);
  course_.stage = Stage::ended;
  EXPECT_EQ(state(), std::nullopt);
}

TEST_F(RentedStateTest, AnotherJobOnTheMachinesIsAskedThere) {
  lose_machines();
  job_.id = "bbbb2222";
  EXPECT_EQ(state(), std::nullopt);
}

// Courses of an older version have no run id, and each attempt has an id of its own.
TEST_F(RentedStateTest, ACourseWithoutARunIdHasNoJobBetweenAttempts) {
  course_.run_id.clear();
  EXPECT_EQ(job_id_of(course_), "aaaa1111");
  lose_machines();
  EXPECT_EQ(state(), std::nullopt);
}

}  // namespace
}  // namespace lockstep::jobs::rented
