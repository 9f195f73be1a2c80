#include "jobs/rented/owner_rules.h"

#include <gtest/gtest.h>

#include <signal.h>

namespace lockstep::jobs::rented {
namespace {

using cloud::RentedJob;
using std::chrono::seconds;

constexpr std::int64_t kMinute = 60'000;
constexpr std::int64_t kDay = std::int64_t{24} * 60 * kMinute;

RentedJob job(RentedJob::Stage stage, std::int64_t began_ms = 0) {
  return {.rental = "r",
          .cluster = "lab",
          .words = {},
          .folder = "/",
          .stage = stage,
          .began_ms = began_ms,
          .host = "me@h"};
}

TEST(OwnerRules, AnErrorThereNamesTheHostAndNotItsCommand) {
  const Error error = error_of_ask(
      "me@h", 1, "lockstep: warning: x\nlockstep host-rental: error: no key\x1b[2J\n", 0);
  EXPECT_EQ(error.message, "me@h: no key\\x1b[2J");
  EXPECT_EQ(error.code, Errc::denied);
  EXPECT_EQ(error_of_ask("me@h", 1, "", 0).message, "me@h: no answer");
  EXPECT_EQ(error_of_ask("me@h", 2, "error: --x", 0).code, Errc::invalid_input);
  EXPECT_LT(error_of_ask("me@h", 1, std::string(1 << 20, 'x'), 0).message.size(), 1100U);
}

TEST(OwnerRules, AKilledCommandIsNoRefusalAndOnlyTheUsersSignalCancels) {
  const Error killed = error_of_ask("me@h", 137, "", 0);
  EXPECT_EQ(killed.code, Errc::unavailable);
  EXPECT_EQ(killed.sys, SIGKILL);
  const Error canceled = error_of_ask("me@h", 130, "error: stopped by the user\n", SIGINT);
  EXPECT_EQ(canceled.code, Errc::canceled);
  EXPECT_EQ(canceled.sys, SIGINT);
  EXPECT_EQ(error_of_ask("me@h", 143, "", SIGINT).code, Errc::unavailable);
  EXPECT_EQ(error_of_ask("me@h", 1, "error: no key", SIGINT).code, Errc::denied);
}

TEST(OwnerRules, ARecordGoesOnlyIfTheJobCanNeverBegin) {
  const Error canceled{Errc::canceled, "stopped by the user", {}, SIGTERM};
  const Error closed{Errc::canceled, "stopped by the user", {}, SIGHUP};
  const Error killed{Errc::unavailable, "me@h: no answer", {}, SIGKILL};
  const Error lost{Errc::unavailable, "me@h: the connection broke", {}, 0};
  const Error denied{Errc::denied, "me@h: no key", {}, 0};
  EXPECT_EQ(after_failed_begin(denied, Asked::ended, {}), FailedBegin::forget);
  EXPECT_EQ(after_failed_begin(canceled, Asked::never, {}), FailedBegin::forget);
  EXPECT_EQ(after_failed_begin(canceled, Asked::ended, false), FailedBegin::forget);
  EXPECT_EQ(after_failed_begin(canceled, Asked::ended, true), FailedBegin::cancel);
  EXPECT_EQ(after_failed_begin(canceled, Asked::ended, {}), FailedBegin::cancel);
  EXPECT_EQ(after_failed_begin(closed, Asked::ended, true), FailedBegin::keep);
  EXPECT_EQ(after_failed_begin(canceled, Asked::unanswered, {}), FailedBegin::keep)
      << "the command there may run still";
  EXPECT_EQ(after_failed_begin(lost, Asked::unanswered, {}), FailedBegin::keep);
  EXPECT_EQ(after_failed_begin(killed, Asked::ended, {}), FailedBegin::keep);
  EXPECT_EQ(after_failed_begin(killed, Asked::ended, true), FailedBegin::keep);
  EXPECT_EQ(after_failed_begin(killed, Asked::ended, false), FailedBegin::forget);
}

TEST(OwnerRules, OnlyTheHostsRecordSettlesAJob) {
  const RentedJob working = job(RentedJob::Stage::working);
  EXPECT_EQ(next_step(working, {.known = true, .ended = false}, 0), OwnedStep::wait);
  EXPECT_EQ(next_step(working, {.known = true, .ended = true}, 0), OwnedStep::settle);
}

TEST(OwnerRules, OutputsComeAfterADownThatLostItsAnswer) {
  EXPECT_EQ(next_step(job(RentedJob::Stage::working), {}, 0), OwnedStep::bring_and_forget);
}

TEST(OwnerRules, ALostBeginIsAwaitedForAQuarterOfAnHour) {
  const RentedJob renting = job(RentedJob::Stage::renting, kDay);
  EXPECT_EQ(next_step(renting, {}, kDay + 14 * kMinute), OwnedStep::wait);
  EXPECT_EQ(next_step(renting, {}, kDay + 15 * kMinute), OwnedStep::forget);
  EXPECT_EQ(next_step(renting, {.known = true, .ended = true}, kDay), OwnedStep::settle);
}

TEST(OwnerRules, ASuccessWithoutItsOutputsIsNone) {
  EXPECT_EQ(settled_code({.code = 0}, true), 0);
  EXPECT_EQ(settled_code({.code = 0}, false), 1);
  EXPECT_EQ(settled_code({.code = 7}, false), 7);
}

TEST(OwnerRules, TheUserSeesTheSignalThatHasCanceledTheJob) {
  EXPECT_EQ(code_for_user(130, SIGTERM), 143);
  EXPECT_EQ(code_for_user(130, SIGINT), 130);
  EXPECT_EQ(code_for_user(130, 0), 130);
  EXPECT_EQ(code_for_user(7, SIGTERM), 7) << "the job's own code";
  EXPECT_EQ(code_for_user(0, SIGTERM), 0);
}

TEST(OwnerRules, AJobThatEndedBeforeItsCancellationHasSucceeded) {
  EXPECT_EQ(ended_state(0, true), JobState::succeeded);
  EXPECT_EQ(ended_state(130, true), JobState::canceled);
  EXPECT_EQ(ended_state(130, false), JobState::failed);
}

TEST(OwnerRules, AnEndIsKeptForAMonthAfterTheLastLine) {
  const RentedJob ended = job(RentedJob::Stage::ended, kDay);
  EXPECT_FALSE(is_long_over(ended, 50 * kDay, 79 * kDay)) << "it ran for longer than a month";
  EXPECT_TRUE(is_long_over(ended, 50 * kDay, 81 * kDay));
  EXPECT_TRUE(is_long_over(ended, {}, 32 * kDay));
  EXPECT_FALSE(is_long_over(job(RentedJob::Stage::ending, kDay), 50 * kDay, 99 * kDay));
}

TEST(OwnerRules, ANameOfAnotherRentalIsRefused) {
  EXPECT_TRUE(check_name_is_of("r", "lab", {}, false));
  EXPECT_TRUE(check_name_is_of("r", "lab", "r", false));
  EXPECT_FALSE(check_name_is_of("r", "lab", "q", false));
  const Status third = check_name_is_of("r", "l\x1b", {}, true);
  ASSERT_FALSE(third);
  EXPECT_EQ(third.error().message, "'l\\x1b' is another rental now");
}

TEST(OwnerRules, AJobWithoutAProcessIsGivenUpAfterAMinute) {
  Unfollowed unfollowed;
  const Unfollowed::Time start{};
  EXPECT_FALSE(unfollowed.look(false, start));
  EXPECT_FALSE(unfollowed.look(false, start + seconds(59)));
  EXPECT_FALSE(unfollowed.look(true, start + seconds(60)));
  EXPECT_FALSE(unfollowed.look(false, start + seconds(61)));
  EXPECT_TRUE(unfollowed.look(false, start + seconds(121)));
}

}  // namespace
}  // namespace lockstep::jobs::rented
