#include "cloud/asker.h"

#include "cloud/scripted_web_testing.h"

#include <gtest/gtest.h>

namespace lockstep::cloud {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::answered;
using testing::ScriptedWeb;
using testing::unanswered;

constexpr RetryRule rule(Repeat repeat) {
  return {.repeat = repeat, .patience = seconds(60), .absence = seconds(5)};
}

ApiFailure refusal(int status, bool passing) {
  ApiFailure failure = refusal_with(status, "code", "message");
  failure.passing = passing;
  return failure;
}

ApiFailure silence(bool sent, Errc code = Errc::unavailable) {
  return without_answer({.code = code, .message = "no answer", .hint = {}}, sent);
}

TEST(Retry, MayItHaveHappened) {
  struct Case {
    ApiFailure failure;
    bool if_not_done, after_failure, always;  // whether the call is repeated
    bool maybe_done;
  };
  const std::vector<Case> cases = {
      {refusal(429, true), true, true, true, false},
      {refusal(503, true), false, true, true, true},
      {refusal(503, false), false, false, false, false},  // this code proves that nothing was done
      {refusal(400, false), false, false, false, false},
      {silence(false), true, true, true, false},
      {silence(true), false, false, true, true},
      {silence(false, Errc::timeout), false, false, false, false},
      {silence(true, Errc::timeout), false, false, false, true},
      {silence(false, Errc::canceled), false, false, false, false},
      {silence(true, Errc::canceled), false, false, false, true},
      {unreadable("cut"), false, false, true, true}};
  for (std::size_t i = 0; i < cases.size(); ++i) {
    const Case& one = cases[i];
    for (const auto& [repeat, again] : {std::pair(Repeat::if_not_done, one.if_not_done),
                                        std::pair(Repeat::after_failure, one.after_failure),
                                        std::pair(Repeat::always, one.always)}) {
      Retry retry(0, rule(repeat));
      ApiFailure failure = one.failure;
      EXPECT_EQ(retry.next(failure, 0, 255).has_value(), again)
          << i << " " << static_cast<int>(repeat);
      EXPECT_EQ(failure.maybe_done, one.maybe_done) << i;
    }
  }
}

TEST(Retry, WhatAnEarlierTryMayHaveDoneIsNotForgotten) {
  Retry retry(0, rule(Repeat::always));
  ApiFailure lost = silence(true);
  EXPECT_TRUE(retry.next(lost, 0, 0));
  ApiFailure refused = refusal(400, false);
  EXPECT_FALSE(retry.next(refused, 0, 0));
  EXPECT_TRUE(refused.maybe_done);
}

TEST(Retry, EachCauseHasItsOwnPatience) {
  Retry retry(0, rule(Repeat::always));
  ApiFailure busy = refusal(503, true);
  for (int i = 0; i < 3; ++i)
    EXPECT_TRUE(retry.next(busy, 0, 255));
  ApiFailure absent = silence(false);
  EXPECT_EQ(retry.next(absent, 0, 255), milliseconds(499));
  EXPECT_FALSE(retry.next(absent, 5'000, 255));
  EXPECT_TRUE(retry.next(busy, 5'000, 255));
  EXPECT_FALSE(retry.next(busy, 60'000, 255));
  Retry impatient(0, {});
  EXPECT_FALSE(impatient.next(busy, 0, 255));
}

// Pauses count even if the clock stands still. Otherwise a call would never end.
TEST(Retry, PausesCountWhereTheClockDoesNot) {
  Retry retry(0, rule(Repeat::always));
  ApiFailure busy = refusal(429, true);
  busy.retry_after = "25";
  EXPECT_EQ(retry.next(busy, 0, 0), seconds(25));
  EXPECT_EQ(retry.next(busy, 0, 0), seconds(25));
  EXPECT_FALSE(retry.next(busy, 0, 0));
}

class Call : public ApiTry {
 public:
  Asked<Question> question(Web& /*web*/) override {
    Question question;
    question.shown = "Test: it";
    return question;
  }
  ApiFailure refusal(const http::Answer& answer) override {
    return refusal_with(answer.head.status, "", "");
  }
  bool mends(Web& /*web*/, const http::Answer& /*answer*/, const ApiFailure& failure) override {
    return failure.status == 401;
  }
};

TEST(AskApi, ACorrectedCallIsMadeAgainAtOnceButNotForEver) {
  ScriptedWeb web([&](const Question&) {
    return web.asked.size() == 1 ? answered(401, "") : answered(200, "body");
  });
  Call call;
  EXPECT_EQ(ask_api(web, call, {}), "body");
  EXPECT_TRUE(web.pauses.empty());
  ScriptedWeb stubborn([](const Question&) { return answered(401, ""); });
  EXPECT_EQ(ask_api(stubborn, call, {}).error().status, 401);
  EXPECT_EQ(stubborn.asked.size(), 3U);
}

TEST(AskApi, AFailureSaysWhatWasAsked) {
  ScriptedWeb web([](const Question&) { return unanswered(true); });
  Call call;
  const auto failure = ask_api(web, call, {}).error();
  EXPECT_EQ(failure.message, "Test: it: no answer");
  EXPECT_EQ(failure.kind, ApiFailure::Kind::unanswered);
}

TEST(AskApi, AStopDuringAPauseKeepsWhatMayBeDone) {
  ScriptedWeb web([](const Question&) { return unanswered(true); });
  web.pauses_left = 0;
  Call call;
  const auto failure = ask_api(web, call, rule(Repeat::always)).error();
  EXPECT_EQ(failure.kind, ApiFailure::Kind::canceled);
  EXPECT_TRUE(failure.maybe_done);
}

}  // namespace
}  // namespace lockstep::cloud
