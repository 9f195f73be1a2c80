#include "cloud/json_api.h"

#include "cloud/scripted_web_testing.h"
#include "codec/json_members.h"

#include <gtest/gtest.h>

namespace lockstep::cloud {
namespace {

using testing::answered;
using testing::ScriptedWeb;
using testing::unanswered;

ServiceWords test_words(const nlohmann::json& answer) {
  return {.code = codec::text_member(answer, "code"),
          .message = codec::text_member(answer, "message")};
}

JsonApi test_api() {
  return JsonApi({.title = "Test",
                  .base = "https://x.test",
                  .secret = "s3cret",
                  .pace = 1,
                  .words = test_words});
}

TEST(JsonApi, AsksAgainOnlyWhereItDoesNoHarm) {
  const JsonQuestion harmless{.target = "/a", .shown = "a"};
  JsonQuestion once = harmless;
  once.repeatable = false;
  // Each case: the first answer, and the number of tries for the harmless and for the other
  // question.
  struct Case {
    Reply first;
    std::size_t harmless, once;
  };
  const std::vector<Case> cases = {{answered(429, "{}"), 2, 2},
                                   {answered(500, "{}"), 2, 1},
                                   {unanswered(true), 2, 1},
                                   {unanswered(false), 2, 2},
                                   {answered(400, "{}"), 1, 1},
                                   {answered(301, ""), 1, 1},
                                   {unanswered(true, Errc::timeout), 1, 1},
                                   {unanswered(false, Errc::canceled), 1, 1},
                                   {answered(200, "no json"), 1, 1}};
  for (std::size_t i = 0; i < cases.size(); ++i)
    for (const bool repeatable : {true, false}) {
      ScriptedWeb web([&](const Question&) {
        return web.asked.size() == 1 ? cases[i].first : answered(200, "{\"x\":1}");
      });
      const auto answer = test_api().ask(web, repeatable ? harmless : once);
      const std::size_t asked = repeatable ? cases[i].harmless : cases[i].once;
      EXPECT_EQ(web.asked.size(), asked) << i << repeatable;
      EXPECT_EQ(answer.has_value(), asked == 2) << i << repeatable;
    }
}

TEST(JsonApi, GivesUpWhenPatienceIsOver) {
  ScriptedWeb web([](const Question&) { return answered(503, "{}"); });
  const auto answer = test_api().ask(web, {.target = "/a", .shown = "a"});
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().status, 503);
  EXPECT_GE(web.asked.size(), 3U);
  EXPECT_LE(web.now, 1'800'000'020'000);
}

TEST(JsonApi, TakesTheServicesOwnPause) {
  ScriptedWeb web([&](const Question&) {
    return web.asked.size() == 1 ? answered(429, "{}", {{"retry-after", "7"}}) : answered(204, "");
  });
  const auto answer = test_api().ask(web, {.target = "/a", .shown = "a"});
  ASSERT_TRUE(answer);
  EXPECT_TRUE(answer->is_null());
  EXPECT_EQ(web.now, 1'800'000'007'000);
}

TEST(JsonApi, WordsOfARefusalAreOneCleanLine) {
  ScriptedWeb web([](const Question&) {
    return answered(401, R"({"code":"bad","message":"key s3cret\n\u001b[31mis wrong"})");
  });
  const auto answer = test_api().ask(web, {.target = "/a", .shown = "list"});
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().message, R"(Test: list: HTTP 401: bad: key [key]\x0a\x1b[31mis wrong)");
  EXPECT_EQ(answer.error().errc, Errc::denied);
  EXPECT_EQ(web.asked[0].fields[0].value, "Bearer s3cret");
}

TEST(JsonApi, ALaunchIsOpenWhereItMayHaveHappened) {
  constexpr RefusalRow kRows[] = {{"full*", Refusal::next_region},
                                  {"unreachable", Refusal::provider_out}};
  const auto kind = [&](Reply reply) {
    ScriptedWeb web([&](const Question&) { return reply; });
    const auto answer = test_api().ask(
        web, {.method = "POST", .target = "/a", .shown = "launch", .repeatable = false});
    return outcome_of(answer.error(), kRows);
  };
  EXPECT_EQ(kind(unanswered(true)).kind, LaunchOutcome::Kind::unknown);
  EXPECT_EQ(kind(answered(502, "")).kind, LaunchOutcome::Kind::unknown);
  EXPECT_EQ(kind(answered(200, "half{")).kind, LaunchOutcome::Kind::unknown);
  EXPECT_EQ(kind(unanswered(false)).code, "unreachable");
  EXPECT_EQ(kind(unanswered(false)).refusal, Refusal::provider_out);
  EXPECT_EQ(kind(answered(400, R"({"code":"full/now"})")).refusal, Refusal::next_region);
  EXPECT_EQ(kind(answered(418, "")).code, "http-418");
  EXPECT_EQ(kind(answered(418, "")).refusal, Refusal::unknown);
}

}  // namespace
}  // namespace lockstep::cloud
