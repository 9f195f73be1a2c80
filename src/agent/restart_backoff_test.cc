#include "agent/restart_backoff.h"

#include <gtest/gtest.h>

namespace lockstep::agent {
namespace {
using std::chrono::milliseconds;
using std::chrono::seconds;

struct Job {
  RestartBackoff backoff{seconds(30)};
  RestartBackoff::Clock::time_point now{std::chrono::hours(1)};

  // Returns the pause in milliseconds after an attempt that lived for `life` and took `stopping` to
  // stop.
  long attempt(milliseconds life, milliseconds stopping = {}) {
    backoff.started(now);
    now += life;
    backoff.ended(now);
    now += stopping;
    backoff.ended(now);
    return backoff.pause(now).count();
  }
};

TEST(RestartBackoff, TheFirstRestartIsImmediateAndThenThePauseDoubles) {
  Job job;
  for (const long expected : {0, 500, 1000, 2000, 4000, 8000, 16000, 30000, 30000})
    EXPECT_EQ(job.attempt(milliseconds(3)), expected);
  EXPECT_EQ(job.backoff.short_attempts(), 9);
}

TEST(RestartBackoff, AnAttemptThatLivedStartsItAnew) {
  Job job;
  job.attempt(milliseconds(3));
  EXPECT_EQ(job.attempt(milliseconds(9999)), 500);
  EXPECT_EQ(job.attempt(seconds(10)), 0);
  EXPECT_EQ(job.attempt(milliseconds(3)), 0);
  EXPECT_EQ(job.attempt(milliseconds(3)), 500);
}

TEST(RestartBackoff, TheTimeThatWorkersTakeToStopIsNoLife) {
  Job job;
  job.attempt(milliseconds(3));
  EXPECT_EQ(job.attempt(milliseconds(3), seconds(30)), 500);
}

TEST(RestartBackoff, TheLongestPauseIsTheUsers) {
  Job job{.backoff = RestartBackoff(milliseconds(700))};
  for (const long expected : {0, 500, 700, 700})
    EXPECT_EQ(job.attempt(milliseconds(3)), expected);
  Job off{.backoff = RestartBackoff(milliseconds(0))};
  for (int i = 0; i < 5; ++i)
    EXPECT_EQ(off.attempt(milliseconds(3)), 0);
}

TEST(RestartBackoff, ThousandsOfRestartsDoNotOverflow) {
  Job job;
  for (int i = 0; i < 5000; ++i)
    job.attempt(milliseconds(1));
  EXPECT_EQ(job.attempt(milliseconds(1)), 30000);
}

TEST(RestartBackoff, ANodeThatComesLaterDoesNotWait) {
  RestartBackoff backoff(seconds(30));
  EXPECT_EQ(backoff.pause({}).count(), 0);
  EXPECT_EQ(backoff.pause({}).count(), 0);
}

// This node's workers are done while a worker of another node fails: the attempt lives as long as
// the round.
TEST(RestartBackoff, AnAttemptThatNothingEndedHereLivesUntilNow) {
  RestartBackoff backoff(seconds(30));
  const RestartBackoff::Clock::time_point begin{std::chrono::hours(1)};
  backoff.started(begin);
  backoff.pause(begin + seconds(10));
  EXPECT_EQ(backoff.short_attempts(), 0);
  backoff.pause(begin + seconds(9));
  EXPECT_EQ(backoff.short_attempts(), 1);
}

}  // namespace
}  // namespace lockstep::agent
