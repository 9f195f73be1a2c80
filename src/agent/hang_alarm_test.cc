#include "agent/hang_alarm.h"

#include <gtest/gtest.h>

namespace lockstep::agent {
namespace {

using looks::Millis;
using looks::VerdictState;

class HangAlarmTest : public testing::Test {
 protected:
  // A second later, the verdict is a hang.
  HangAlarm::Steps hung(bool asking = false, io::Duration hearing = {}) {
    looks::Verdict verdict{.state = VerdictState::hung, .alarm = true, .alarm_begins = !alarm_};
    return feed(verdict, asking, hearing);
  }
  HangAlarm::Steps waiting(int since_s) {
    return feed(
        {.state = VerdictState::waiting, .since = Millis(since_s * 1000), .limit = Millis(30'000)},
        false, {});
  }
  HangAlarm::Steps feed(const looks::Verdict& verdict, bool asking, io::Duration hearing) {
    now_ += std::chrono::seconds(1);
    alarm_ = verdict.alarm;
    return steps_.feed(verdict, asking, hearing, now_);
  }

  HangAlarm steps_;
  bool alarm_ = false;
  io::TimePoint now_{std::chrono::hours(5)};
};

TEST_F(HangAlarmTest, AHangIsToldAndActedOnOnce) {
  const auto first = hung();
  EXPECT_TRUE(first.tell);
  EXPECT_TRUE(first.act);
  const auto second = hung();
  EXPECT_FALSE(second.tell);
  EXPECT_FALSE(second.act);
}

TEST_F(HangAlarmTest, RecordersDelayAHangByThreeSecondsAtMost) {
  for (int second = 0; second < 3; ++second)
    EXPECT_FALSE(hung(true).tell) << second;
  EXPECT_TRUE(hung(true).tell);
}

TEST_F(HangAlarmTest, AnswersOfRecordersEndTheDelay) {
  EXPECT_FALSE(hung(true).tell);
  const auto steps = hung(false);
  EXPECT_TRUE(steps.tell);
  EXPECT_TRUE(steps.act);
}

TEST_F(HangAlarmTest, TheAgentActsOnceOtherNodesHaveHeard) {
  const std::chrono::seconds hearing(2);
  EXPECT_TRUE(hung(false, hearing).tell);
  EXPECT_FALSE(hung(false, hearing).act);
  EXPECT_TRUE(hung(false, hearing).act);
}

TEST_F(HangAlarmTest, AJobThatGoesOnIsLeftAlone) {
  const std::chrono::seconds hearing(2);
  EXPECT_TRUE(hung(false, hearing).tell);
  EXPECT_FALSE(feed({.state = VerdictState::training}, false, hearing).act);
  EXPECT_FALSE(feed({.state = VerdictState::training}, false, hearing).act);
}

TEST_F(HangAlarmTest, AHangThatEndsBeforeItIsToldIsNotTold) {
  EXPECT_FALSE(hung(true).tell);
  EXPECT_FALSE(feed({.state = VerdictState::training}, false, {}).tell);
}

TEST_F(HangAlarmTest, RanksThatWaitForAStoppedOneAreToldButNotEnded) {
  const auto steps =
      feed({.state = VerdictState::stopped, .alarm = true, .alarm_begins = true}, false, {});
  EXPECT_TRUE(steps.tell);
  EXPECT_FALSE(steps.act);
}

TEST_F(HangAlarmTest, AWaitIsToldOnceWhenItIsAsLongAsAHang) {
  EXPECT_FALSE(waiting(29).tell_wait);
  EXPECT_TRUE(waiting(30).tell_wait);
  EXPECT_FALSE(waiting(31).tell_wait);
  EXPECT_FALSE(feed({.state = VerdictState::training}, false, {}).tell_wait);
  EXPECT_TRUE(waiting(30).tell_wait);
}

}  // namespace
}  // namespace lockstep::agent
