#include "jobs/places/rented_state.h"

#include <gtest/gtest.h>

namespace lockstep::jobs::places {
namespace {

using Stage = cloud::RentedJob::Stage;
using State = std::optional<JobState>;

class RentedStateTest : public ::testing::Test {
 protected:
  RentedStateTest() {
    course_.cluster = "gpus";
    course_.began_ms = 100;
    course_.job = "aaaa1111";
    course_.stage = Stage::working;
    attempt_ = {.id = "aaaa1111", .name = "train", .place = "gpus", .command = "train.py"};
    attempt_.created_ms = 200;
  }
  State state() const { return state_in_course(attempt_, all_, {course_}); }
  // Another attempt, or another job on the machines.
  void add(const std::string& id, std::int64_t created_ms) {
    all_.push_back({.id = id, .name = "train", .place = "gpus", .command = "train.py"});
    all_.back().created_ms = created_ms;
  }

  cloud::RentedJob course_;
  KnownJob attempt_;
  std::vector<KnownJob> all_;
};

TEST_F(RentedStateTest, ARunningAttemptIsAskedOfItsMachines) {
  EXPECT_EQ(state(), std::nullopt);
  EXPECT_EQ(state_in_course(attempt_, all_, {}), std::nullopt) << "hosts that were not rented";
}

TEST_F(RentedStateTest, AfterALossTheJobIsRestartingUntilItRunsAgain) {
  course_.stage = Stage::lost;
  course_.losses = 1;
  course_.job.clear();
  EXPECT_EQ(state(), JobState::restarting);
  course_.stage = Stage::renting;
  EXPECT_EQ(state(), JobState::restarting);
  attempt_.status = {.state = JobState::failed, .code = 143};
  EXPECT_EQ(state(), JobState::restarting) << "it has ended by itself, at the notice of the loss";
  attempt_.status = {.state = JobState::running};
  add("bbbb2222", 300);
  EXPECT_EQ(state(), JobState::lost) << "the machines of an earlier attempt are gone, too";
  course_.stage = Stage::working;
  course_.job = "bbbb2222";
  EXPECT_EQ(state(), JobState::lost) << "another attempt runs now";
}

TEST_F(RentedStateTest, AnotherJobOnTheNewMachinesIsAskedThere) {
  course_.losses = 1;
  course_.job = "bbbb2222";
  add("bbbb2222", 150);
  EXPECT_EQ(state(), std::nullopt);
}

// Renting may fail for good: nothing starts the job again.
TEST_F(RentedStateTest, ACourseThatGaveUpLeavesALostAttempt) {
  course_.stage = Stage::ending;
  course_.losses = 1;
  course_.job.clear();
  EXPECT_EQ(state(), JobState::lost);
  attempt_.status.state = JobState::restarting;
  EXPECT_EQ(state_in_course(attempt_, all_, {}), JobState::lost) << "its record is gone";
}

TEST_F(RentedStateTest, AnEndedJobIsSavingWhileItsOutputsComeBack) {
  attempt_.status = {.state = JobState::succeeded, .code = 0};
  EXPECT_EQ(state(), std::nullopt) << "nothing is to be brought";
  course_.back = {"out"};
  EXPECT_EQ(state(), JobState::saving);
  course_.stage = Stage::ended;
  EXPECT_EQ(state(), std::nullopt);
}

TEST_F(RentedStateTest, AnEarlierJobOnAClusterOfThisNameIsNotMeant) {
  attempt_.created_ms = 50;
  course_.stage = Stage::lost;
  course_.losses = 1;
  course_.job.clear();
  EXPECT_EQ(state(), std::nullopt);
  attempt_.created_ms = 200;
  attempt_.place = "others";
  EXPECT_EQ(state(), std::nullopt);
}

}  // namespace
}  // namespace lockstep::jobs::places
