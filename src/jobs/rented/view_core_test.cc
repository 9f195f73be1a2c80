#include "jobs/rented/view_core.h"

#include <gtest/gtest.h>

#include <signal.h>

namespace lockstep::jobs::rented {
namespace {

using Stage = cloud::RentedJob::Stage;

ViewCore::Record record(Stage stage, int code = 0) {
  return cloud::RentedJob{
      .rental = "r", .cluster = "lab", .words = {}, .folder = "/", .stage = stage, .code = code};
}

constexpr std::chrono::milliseconds kShort{1000};

TEST(ViewCore, TheRecordHasTheExitCode) {
  ViewCore view(false);
  EXPECT_EQ(view.on_look(true, true), ViewStep::go_on);
  EXPECT_EQ(view.on_course_end(1, record(Stage::ended, 7), kShort), ViewStep::finish);
  EXPECT_EQ(view.code(), 7);
}

TEST(ViewCore, AJobThatDownHasDroppedEndsWithTheCoursesCode) {
  ViewCore view(false);
  EXPECT_EQ(view.on_course_end(3, {}, kShort), ViewStep::finish);
  EXPECT_EQ(view.code(), 3);
}

TEST(ViewCore, CtrlCWaitsForACourseThatHandlesIt) {
  ViewCore view(false);
  EXPECT_EQ(view.on_signal(SIGINT, record(Stage::working)), ViewStep::go_on);
  EXPECT_EQ(view.on_look(false, false), ViewStep::go_on);
  EXPECT_EQ(view.on_look(true, false), ViewStep::cancel);
  EXPECT_EQ(view.on_look(true, false), ViewStep::go_on) << "once";
  EXPECT_EQ(view.on_signal(SIGTERM, record(Stage::working)), ViewStep::go_on);
  EXPECT_EQ(view.on_look(true, false), ViewStep::cancel);
  EXPECT_EQ(view.on_signal(SIGINT, record(Stage::working)), ViewStep::leave);
  EXPECT_EQ(view.code(), 130);
}

TEST(ViewCore, CtrlCWhileMachinesAreTerminatedLeaves) {
  ViewCore view(false);
  EXPECT_EQ(view.on_signal(SIGTERM, record(Stage::ending)), ViewStep::leave);
  EXPECT_EQ(view.code(), 143);
}

TEST(ViewCore, AClosedTerminalLeavesTheJob) {
  ViewCore view(false);
  EXPECT_EQ(view.on_signal(SIGCHLD, record(Stage::working)), ViewStep::go_on);
  EXPECT_EQ(view.on_signal(SIGHUP, record(Stage::working)), ViewStep::leave);
  EXPECT_EQ(view.code(), 129);
}

TEST(ViewCore, ACourseThatDiesIsStartedAgainEightTimes) {
  ViewCore view(false);
  auto before = std::chrono::milliseconds(0);
  for (int start = 0; start < 8; ++start) {
    EXPECT_EQ(view.on_course_end(137, record(Stage::working), kShort), ViewStep::start_again);
    EXPECT_GT(view.pause(), before);
    before = view.pause();
  }
  EXPECT_EQ(view.on_course_end(137, record(Stage::working), kShort), ViewStep::give_up);
  EXPECT_EQ(view.code(), 1) << "an unknown end is no success";
}

TEST(ViewCore, ALongLifeEndsARowOfFailures) {
  ViewCore view(false);
  for (int start = 0; start < 30; ++start)
    EXPECT_EQ(view.on_course_end(137, record(Stage::working), std::chrono::hours(1)),
              ViewStep::start_again);
}

TEST(ViewCore, CtrlCAfterTheEndSparesTheRestOfTheOutput) {
  ViewCore view(false);
  EXPECT_EQ(view.on_course_end(1, record(Stage::ended, 7), kShort), ViewStep::finish);
  EXPECT_EQ(view.on_signal(SIGINT, record(Stage::ended, 7)), ViewStep::stop);
  EXPECT_EQ(view.code(), 130);
}

TEST(ViewCore, ACourseThatIsStartedAgainIsToldOfTheCancellation) {
  ViewCore view(false);
  EXPECT_EQ(view.on_signal(SIGINT, record(Stage::working)), ViewStep::go_on);
  EXPECT_EQ(view.on_look(true, false), ViewStep::cancel);
  EXPECT_EQ(view.on_course_end(137, record(Stage::working), kShort), ViewStep::start_again);
  EXPECT_EQ(view.on_look(false, false), ViewStep::go_on);
  EXPECT_EQ(view.on_look(true, false), ViewStep::cancel);
}

TEST(ViewCore, ADetachedViewEndsWithTheStartUnlessItWasCanceled) {
  ViewCore view(true);
  EXPECT_EQ(view.on_look(true, false), ViewStep::go_on);
  EXPECT_EQ(view.on_look(true, true), ViewStep::leave);
  EXPECT_EQ(view.code(), 0);
  ViewCore canceled(true);
  EXPECT_EQ(canceled.on_signal(SIGINT, record(Stage::working)), ViewStep::go_on);
  EXPECT_EQ(canceled.on_look(true, true), ViewStep::cancel);
  EXPECT_EQ(canceled.on_look(true, true), ViewStep::go_on);
}

}  // namespace
}  // namespace lockstep::jobs::rented
