#include "setup/step_log.h"

#include <gtest/gtest.h>

namespace lockstep::setup {
namespace {

using Steps = std::vector<std::string>;

// An environment with a counter of changes as its state.
class StepLogTest : public ::testing::Test {
 protected:
  // Carries out the list as the driver does. Returns the steps that were not skipped.
  std::string install(const Steps& steps, const std::string& changing, const std::string& digest) {
    log_ = StepLog::read(log_.print());
    log_.open("python", std::to_string(state_));
    std::string done;
    for (std::size_t i = 0; i < steps.size(); ++i) {
      const std::string own = steps[i] == "tree" ? digest : "same";
      if (log_.holds(steps, i, own)) continue;
      log_.starting(steps[i]);
      if (changing.find(steps[i]) != std::string::npos) ++state_;
      log_.finished(steps[i], own, std::to_string(state_));
      done += (done.empty() ? "" : " ") + steps[i];
    }
    return done;
  }

  StepLog log_;
  int state_ = 1;
};

TEST_F(StepLogTest, UnchangedStepsHold) {
  EXPECT_EQ(install({"reqs", "tree"}, "reqs tree", "1"), "reqs tree");
  EXPECT_EQ(install({"reqs", "tree"}, "reqs tree", "1"), "");
  EXPECT_EQ(install({"reqs", "tree"}, "reqs tree", "2"), "tree");
  EXPECT_EQ(install({"reqs", "tree"}, "reqs tree", "2"), "");
  EXPECT_EQ(install({"reqs", "tree", "more"}, "more", "2"), "more");
}

TEST_F(StepLogTest, WhatAnotherStepMayHaveUndoneIsDoneAgain) {
  install({"a", "b"}, "a b", "");
  EXPECT_EQ(install({"a"}, "", ""), "a");  // b came after a and is not requested now
  EXPECT_EQ(install({"a"}, "", ""), "");
  EXPECT_EQ(install({"b"}, "", ""), "");
  EXPECT_EQ(install({"b", "a"}, "", ""), "");
  EXPECT_EQ(install({"c"}, "c", ""), "c");
  EXPECT_EQ(install({"b", "a"}, "", ""), "b a");
  EXPECT_EQ(install({"c"}, "", ""), "");
}

TEST_F(StepLogTest, AStepThatTurnsBackWhatAnotherDidDoesNotHoldForTheOther) {
  install({"a"}, "a", "");
  install({"b"}, "b", "");
  EXPECT_EQ(install({"a"}, "a", ""), "a");
  EXPECT_EQ(install({"b"}, "b", ""), "b");
}

TEST_F(StepLogTest, ChangesByOthersForgetAll) {
  install({"a", "b"}, "a b", "");
  state_ = 77;
  EXPECT_EQ(install({"a", "b"}, "", ""), "a b");
}

TEST_F(StepLogTest, AnotherInterpreterForgetsAll) {
  install({"a"}, "a", "");
  log_.open("python3.14", std::to_string(state_));
  EXPECT_FALSE(log_.holds(Steps{"a"}, 0, "same"));
}

TEST_F(StepLogTest, AStepThatWasCutOffIsDoneAgainAndOthersHold) {
  install({"a", "b"}, "a b", "");
  log_.starting("b");
  ++state_;  // killed after it had begun to change the environment
  EXPECT_EQ(install({"a", "b"}, "b", ""), "b");
  log_.starting("a");
  EXPECT_EQ(install({"a", "b"}, "", ""), "a");
}

TEST_F(StepLogTest, AFailedStepIsDoneAgain) {
  log_.open("python", "1");
  log_.starting("a");
  log_.finished("a", "", "1");
  EXPECT_EQ(install({"a"}, "", ""), "a");
}

TEST_F(StepLogTest, DamageMakesAnEmptyLog) {
  for (const char* text : {"", "{", "[]", "{\"steps\": 1}", "{\"steps\": [1]}"}) {
    StepLog log = StepLog::read(text);
    log.open("", "");
    EXPECT_FALSE(log.holds(Steps{"a"}, 0, "")) << text;
  }
}

}  // namespace
}  // namespace lockstep::setup
