#include "cloud/gcp/api.h"

#include "base/error_testing.h"
#include "cloud/bounded_web.h"
#include "cloud/gcp/gcp_testing.h"
#include "cloud/gcp/values.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <thread>

namespace lockstep::cloud::gcp {
namespace {

using testing::bare_ground;
using testing::Google;
using testing::user_keys;

class GcpApi : public ::testing::Test {
 protected:
  Google google;
  Api api{user_keys(), bare_ground()};

  ApiAnswer get(const char* target = "/x") {
    return api.ask(google.web, {.target = target, .shown = "x"});
  }
};

std::string bearer(const Question& question) {
  for (const http::Field& field : question.fields)
    if (field.name == "authorization") return field.value;
  return "";
}

TEST_F(GcpApi, AsksForATokenOnceAndAgainFiveMinutesEarly) {
  for (int i = 0; i < 4; ++i)
    google.says("GET /x", 200, "{}");
  ASSERT_TRUE(get());
  ASSERT_TRUE(get());
  EXPECT_EQ(google.tokens, 1);
  google.web.now += (3599LL - 301) * 1000;
  ASSERT_TRUE(get());
  EXPECT_EQ(google.tokens, 1);
  google.web.now += 2'000;
  ASSERT_TRUE(get());
  EXPECT_EQ(google.tokens, 2);
  EXPECT_EQ(bearer(google.web.asked.back()), "Bearer token-2");
  EXPECT_EQ(google.web.asked.front().body,
            "grant_type=refresh_token&client_id=id&client_secret=client-secret&"
            "refresh_token=refresh-secret");
}

TEST_F(GcpApi, RenewsATokenThatIsNotTakenJustOnce) {
  google.says("GET /x", 401, "{}");
  google.says("GET /x", 200, R"({"a":1})");
  ASSERT_TRUE(get());
  EXPECT_EQ(google.tokens, 2);
  google.says("GET /x", 401, "{}");
  google.says("GET /x", 401, "{}");
  const ApiAnswer answer = get();
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().status, 401);
  EXPECT_EQ(meaning_of(answer.error()), Refusal::provider_out);
}

TEST_F(GcpApi, WaitsWhereGoogleIsBusy) {
  google.says("GET /x", 503, "{}", {{"retry-after", "7"}});
  google.says("GET /x", 403, R"({"error":{"errors":[{"reason":"rateLimitExceeded"}]}})");
  google.says("GET /x", 200, "{}");
  ASSERT_TRUE(get());
  ASSERT_EQ(google.web.pauses.size(), 2U);
  EXPECT_EQ(google.web.pauses[0].count(), 7000);
}

TEST_F(GcpApi, NeverShowsASecret) {
  google.says("GET /x", 400, R"({"error":{"message":"bad token-1 and client-secret"}})");
  const ApiAnswer answer = get();
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().message, "bad *** and ***");
}

TEST_F(GcpApi, LooksAtWhatALostPostHasDone) {
  google.loses("POST /x", true);
  const ApiAnswer answer =
      api.ask(google.web, {.method = "POST", .target = "/x", .body = "{}", .shown = "x"});
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().kind, ApiFailure::Kind::unanswered);
  EXPECT_EQ(google.web.count("/x"), 1U);
  // A server that fails until patience ends may have carried out the call.
  for (int i = 0; i < 20; ++i)
    google.says("POST /x", 500, "{}");
  const ApiAnswer failed =
      api.ask(google.web, {.method = "POST", .target = "/x", .body = "{}", .shown = "x"});
  EXPECT_EQ(failed.error().kind, ApiFailure::Kind::unanswered);
}

TEST_F(GcpApi, ReadsAllPages) {
  // The first matching answer is used, and the shorter target matches both.
  google.says("GET /list?a=b&pageToken=next%2F1", 200, R"({"n":2})");
  google.says("GET /list?a=b", 200, R"({"n":1,"nextPageToken":"next/1"})");
  std::int64_t sum = 0;
  const auto done =
      api.ask_pages(google.web, {.target = "/list?a=b", .shown = "x"}, 5, [&](const auto& page) {
        sum = sum * 10 + number_at(page, "n");
        return true;
      });
  ASSERT_TRUE(done);
  EXPECT_EQ(sum, 12);
}

TEST_F(GcpApi, WaitsForOperationsAndReadsTheirEnd) {
  const auto begun = codec::parse_json(testing::operation("RUNNING"));
  google.says("POST /compute/v1/projects/proj/zones/us-central1-a/operations/operation-1/wait", 200,
              testing::operation("RUNNING"));
  google.loses("POST /compute/v1/projects/proj/zones/us-central1-a/operations/operation-1/wait",
               true);
  google.says("POST /compute/v1/projects/proj/zones/us-central1-a/operations/operation-1/wait", 200,
              testing::operation("DONE", R"({"code":"QUOTA_EXCEEDED","message":"q"})"));
  const auto done = api.wait(google.web, begun, std::chrono::minutes(5));
  ASSERT_FALSE(done);
  EXPECT_EQ(code_of(done), "QUOTA_EXCEEDED");
  EXPECT_TRUE(google.used_up());
  EXPECT_TRUE(
      api.wait(google.web, codec::parse_json(testing::operation("DONE")), std::chrono::minutes(5)));
}

TEST_F(GcpApi, TakesNoStrangeNameForAnOperation) {
  const auto strange = codec::parse_json(R"({"name":"../../x","status":"RUNNING"})");
  EXPECT_FALSE(api.wait(google.web, strange, std::chrono::minutes(5)));
  EXPECT_TRUE(google.web.asked.empty());
}

TEST(GcpTokens, GoByGooglesClockWhereOursIsOff) {
  Credentials keys = user_keys();
  Tokens tokens(keys);
  int asked = 0;
  cloud::testing::ScriptedWeb web([&](const Question&) {
    if (++asked == 1)
      return cloud::testing::answered(400, R"({"error":"invalid_grant"})",
                                      {{"date", "Mon, 23 Nov 2026 06:00:00 GMT"}});
    return cloud::testing::answered(200, R"({"access_token":"t","expires_in":10})");
  });
  EXPECT_TRUE(tokens.get(web));
  EXPECT_EQ(asked, 2);
}

// gcloud may take long. A thread with less time must not wait for gcloud, nor for a thread that
// does.
TEST(GcpTokens, AProgramThatIsSlowIsNotWaitedForLongerThanThereIsTime) {
  std::string folder = ::testing::TempDir() + "gcloudXXXXXX";
  ASSERT_NE(mkdtemp(folder.data()), nullptr);
  std::ofstream(folder + "/gcloud") << "#!/bin/sh\nexec sleep 600\n";
  std::filesystem::permissions(folder + "/gcloud", std::filesystem::perms::owner_all);
  const std::string before = std::getenv("PATH");
  setenv("PATH", (folder + ":" + before).c_str(), 1);
  Credentials keys;
  keys.kind = Credentials::Kind::gcloud;
  Tokens tokens(keys);
  cloud::testing::ScriptedWeb web([](const Question&) { return Reply{}; });
  const auto asked = [&](std::chrono::milliseconds time) {
    BoundedWeb bounded(web, io::Clock::now() + time);
    const auto began = io::Clock::now();
    EXPECT_EQ(code_of(tokens.get(bounded)), Errc::timeout);
    return io::Clock::now() - began;
  };
  std::thread other([&] { asked(std::chrono::seconds(8)); });
  EXPECT_LT(asked(std::chrono::milliseconds(200)), std::chrono::seconds(5));
  EXPECT_LT(asked(std::chrono::milliseconds(200)), std::chrono::seconds(5));
  other.join();
  setenv("PATH", before.c_str(), 1);
  std::filesystem::remove_all(folder);
}

TEST(GcpTokens, AreUsedUntilTheyEndWhereNoNewOneIsGiven) {
  Tokens tokens(user_keys());
  Reply answer = cloud::testing::answered(200, R"({"access_token":"t","expires_in":3600})");
  cloud::testing::ScriptedWeb web([&](const Question&) { return answer; });
  ASSERT_TRUE(tokens.get(web));
  answer = cloud::testing::answered(503, "");
  web.now += 3'500'000;
  for (int i = 0; i < 2; ++i) {
    const auto token = tokens.get(web);
    ASSERT_TRUE(token);
    EXPECT_EQ(*token, "t");
  }
  EXPECT_EQ(web.asked.size(), 2U) << "once a second at most";
  web.now += 100'000;
  EXPECT_FALSE(tokens.get(web));
}

// The user is told at once about a termination that lack of keys refused. NoAnswer of the endpoint
// does not count as lack of keys.
TEST(GcpTokens, AnEndpointThatFailsSaysNothingAboutTheKeys) {
  const auto code_of = [](const Reply& answer) {
    cloud::testing::ScriptedWeb web([&](const Question&) { return answer; });
    Api api(user_keys(), bare_ground());
    const ApiAnswer asked = api.ask(web, {.target = "/x", .shown = "x"});
    return failure_of(asked.error(), "x").value().code;
  };
  EXPECT_EQ(code_of(cloud::testing::answered(503, "")), Errc::unavailable);
  EXPECT_EQ(code_of(cloud::testing::unanswered(true)), Errc::unavailable);
  EXPECT_EQ(code_of(cloud::testing::answered(400, R"({"error":"invalid_grant"})")), Errc::denied);
}

TEST(GcpTokens, WithoutOneSayWhoseKeysTheyAre) {
  Tokens tokens(user_keys());
  cloud::testing::ScriptedWeb web([&](const Question&) {
    return cloud::testing::answered(
        400, R"({"error":"invalid_grant","error_description":"Token has been expired"})");
  });
  const auto token = tokens.get(web);
  ASSERT_FALSE(token);
  EXPECT_EQ(token.error().message,
            "no access token for the keys in adc.json: Token has been expired (invalid_grant)");
  EXPECT_EQ(code_of(token), Errc::denied);
}

}  // namespace
}  // namespace lockstep::cloud::gcp
