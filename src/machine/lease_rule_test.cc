#include "machine/lease_rule.h"

#include <gtest/gtest.h>

namespace lockstep::machine {
namespace {

using StepKind = LeaseStep::Kind;

// A lease of an hour with an idle limit of ten minutes; something worked just now.
LeaseView busy_at(std::int64_t now) {
  return {.now = now, .begin = 0, .end = 3'600'000, .idle_limit = 600'000, .idle_since = now};
}

TEST(LeaseRule, EndsAtItsEndWhateverRuns) {
  LeaseView view = busy_at(3'599'999);
  EXPECT_EQ(next_step(view).kind, StepKind::wait);
  view.now = 3'600'000;
  view.jobs = 3;
  view.hold_until = 9'000'000;
  EXPECT_EQ(next_step(view).kind, StepKind::end);
  EXPECT_EQ(next_step(view).why, "its lease is over");
}

TEST(LeaseRule, EndsWhenNothingHasWorkedForSoLong) {
  LeaseView view = busy_at(1'000'000);
  view.idle_since = 400'001;
  EXPECT_EQ(next_step(view).kind, StepKind::wait);
  view.idle_since = 400'000;
  EXPECT_EQ(next_step(view).kind, StepKind::end);
  EXPECT_EQ(next_step(view).why, "the machine has been idle for 600 s");
  view.jobs = 1;
  EXPECT_EQ(next_step(view).kind, StepKind::wait);
  view.jobs = 0;
  view.hold_until = 1'000'001;
  EXPECT_EQ(next_step(view).kind, StepKind::wait);
  view.hold_until = 1'000'000;
  EXPECT_EQ(next_step(view).kind, StepKind::end);
  view.idle_limit = 0;
  EXPECT_EQ(next_step(view).kind, StepKind::wait);
}

TEST(LeaseRule, StopsJobsAMinuteBeforeTheEnd) {
  LeaseView view = busy_at(3'539'999);
  view.jobs = 1;
  EXPECT_EQ(next_step(view).kind, StepKind::wait);
  view.now = 3'540'000;
  EXPECT_EQ(next_step(view).kind, StepKind::stop_jobs);
  view.jobs = 0;
  EXPECT_EQ(next_step(view).kind, StepKind::wait);
  EXPECT_EQ(stop_ahead_ms(0, 20'000), 5'000);
  EXPECT_EQ(stop_ahead_ms(10, 5), 0);
}

TEST(LeaseRule, ANoticeStopsJobsAtOnceAndLeavesTheEndToTheProvider) {
  LeaseView view = busy_at(5);
  view.notice = "terminate";
  EXPECT_EQ(next_step(view).kind, StepKind::wait);
  view.jobs = 1;
  EXPECT_EQ(next_step(view).kind, StepKind::stop_jobs);
  EXPECT_EQ(next_step(view).why, "the provider takes the machine away: terminate");
}

}  // namespace
}  // namespace lockstep::machine
