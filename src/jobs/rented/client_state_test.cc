#include "jobs/rented/client_state.h"

#include "rent/fake_world_testing.h"
#include "rent/job_claim.h"

namespace lockstep::jobs::rented {
namespace {

using Stage = cloud::RentedJob::Stage;

class ClientStateTest : public rent::testing::FakeWorld {
 protected:
  OwnedState state(Stage stage) {
    job_.stage = stage;
    EXPECT_TRUE(world->journal().keep_job(job_));
    return state_for_client(world->journal(), job_.rental).value();
  }
  void begins(JobState now) {
    job_.job = "aaaa1111";
    EXPECT_TRUE(JobBook::open(folder + "/lockstep")
                    ->add({.id = "aaaa1111",
                           .name = "train",
                           .place = "a",
                           .command = {},
                           .status = {.state = now}}));
  }
  cloud::RentedJob job_ = {.rental = "intent-a",
                           .cluster = "a",
                           .words = {},
                           .folder = "/",
                           .note = "it cost 1 USD",
                           .back = {"out"},
                           .client = "laptop"};
};

TEST_F(ClientStateTest, AJobIsToldAsItsCourseStands) {
  rented("a");
  EXPECT_EQ(state(Stage::renting).state, "starting");
  begins(JobState::starting);
  EXPECT_EQ(state(Stage::working).state, "starting");
  begins(JobState::running);
  EXPECT_EQ(state(Stage::working).state, "running");
  EXPECT_EQ(state(Stage::working).job, "aaaa1111");
  begins(JobState::succeeded);
  EXPECT_EQ(state(Stage::working).state, "saving") << "its outputs come";
  EXPECT_EQ(state(Stage::lost).state, "restarting");
  EXPECT_EQ(state(Stage::ending).state, "saving");
  const OwnedState held = state(Stage::ended);
  EXPECT_EQ(held.state, "saving") << "machines are left, and cost money";
  EXPECT_FALSE(held.ended);
}

TEST_F(ClientStateTest, AnEndIsFinalOnceNoMachineAndNoProcessIsLeft) {
  job_.code = 3;
  OwnedState ended = state(Stage::ended);
  EXPECT_TRUE(ended.known && ended.ended);
  EXPECT_EQ(ended.state, "failed");
  EXPECT_EQ(ended.code, 3);
  EXPECT_EQ(ended.note, "it cost 1 USD");
  const auto claim = rent::claim_job("intent-a");
  EXPECT_FALSE(state(Stage::ended).ended);
}

TEST_F(ClientStateTest, AJobWithoutMachinesAndWithoutAProcessHasEnded) {
  {
    const auto claim = rent::claim_job("intent-a");
    EXPECT_FALSE(state(Stage::working).ended) << "its course rents again";
  }
  const OwnedState ended = state(Stage::working);
  EXPECT_TRUE(ended.ended);
  EXPECT_EQ(ended.code, 1);
  EXPECT_NE(ended.note.find("before the end of the job was seen"), std::string::npos);
  EXPECT_EQ(world->journal().jobs()->at(0).stage, Stage::ended);
  job_.code = 0;
  EXPECT_EQ(state(Stage::ending).code, 0) << "the course had noted the end";
}

TEST_F(ClientStateTest, ANotedSuccessIsNotForgottenWithItsProcess) {
  job_.succeeded = true;
  EXPECT_EQ(state(Stage::working).note, "the job had succeeded, but its outputs are not here");
  job_.back.clear();
  const OwnedState ended = state(Stage::working);
  EXPECT_TRUE(ended.ended);
  EXPECT_EQ(ended.state, "succeeded");
  EXPECT_EQ(ended.code, 0);
}

TEST_F(ClientStateTest, OnlyAClientsJobIsTold) {
  job_.client.clear();
  EXPECT_FALSE(state(Stage::working).known);
  EXPECT_FALSE(state_for_client(world->journal(), "other")->known);
}

}  // namespace
}  // namespace lockstep::jobs::rented
