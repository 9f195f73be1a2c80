#include "cloud/aws/api.h"

#include "base/error_testing.h"
#include "cloud/scripted_web_testing.h"

#include <gtest/gtest.h>

namespace lockstep::cloud::aws {
namespace {

using cloud::testing::answered;
using cloud::testing::ScriptedWeb;
using cloud::testing::unanswered;

constexpr const char* kGood = "<DescribeRegionsResponse><regionInfo/></DescribeRegionsResponse>";

std::string refusal_xml(const char* code) {
  return std::string("<Response><Errors><Error><Code>") + code +
         "</Code><Message>no</Message></Error></Errors></Response>";
}

Ground ground_with(std::map<std::string, std::string> variables) {
  variables.emplace("AWS_ACCESS_KEY_ID", "AKID");
  variables.emplace("AWS_SECRET_ACCESS_KEY", "SECRET");
  return {.env = [variables](std::string_view name) -> std::optional<std::string> {
            const auto found = variables.find(std::string(name));
            if (found == variables.end()) return std::nullopt;
            return found->second;
          },
          .home = "/nonexistent",
          .cache = {},
          .state = {}};
}

std::string field_of(const Question& question, std::string_view name) {
  for (const http::Field& field : question.fields)
    if (field.name == name) return field.value;
  return {};
}

ApiCall harmless() {
  return ApiCall::of(Query("DescribeRegions"), "eu-west-1");
}

TEST(AwsApi, AsksTheRegionWithASignature) {
  Api api(ground_with({{"AWS_SESSION_TOKEN", "TOKEN"}}));
  ScriptedWeb web([](const Question&) { return answered(200, kGood); });
  ASSERT_TRUE(api.ask(web, harmless()));
  ASSERT_EQ(web.asked.size(), 1U);
  EXPECT_EQ(web.asked[0].base, "https://ec2.eu-west-1.amazonaws.com");
  EXPECT_EQ(web.asked[0].body, "Action=DescribeRegions&Version=2016-11-15");
  EXPECT_EQ(field_of(web.asked[0], "x-amz-security-token"), "TOKEN");
  const std::string proof = field_of(web.asked[0], "authorization");
  EXPECT_NE(proof.find("Credential=AKID/"), std::string::npos) << proof;
  EXPECT_NE(proof.find("/eu-west-1/ec2/aws4_request"), std::string::npos) << proof;
  EXPECT_NE(proof.find("SignedHeaders=content-type;host;x-amz-date;x-amz-security-token"),
            std::string::npos)
      << proof;
  EXPECT_EQ(proof.find("SECRET"), std::string::npos);
}

TEST(AwsApi, EndpointsCanBeGiven) {
  Api api(ground_with({{"AWS_ENDPOINT_URL", "http://127.0.0.1:4000"},
                       {"AWS_ENDPOINT_URL_SERVICE_QUOTAS", "https://quotas.example"}}));
  ScriptedWeb web([](const Question&) { return answered(200, "{}"); });
  ASSERT_TRUE(api.ask(web, harmless()));
  EXPECT_EQ(web.asked[0].base, "http://127.0.0.1:4000");
  ASSERT_TRUE(
      api.ask_json(web, ApiCall::of(Service::quotas, "eu-west-1", "GetServiceQuota", "{}")));
  EXPECT_EQ(web.asked[1].base, "https://quotas.example");
  EXPECT_EQ(field_of(web.asked[1], "x-amz-target"), "ServiceQuotasV20190624.GetServiceQuota");
  EXPECT_EQ(field_of(web.asked[1], "content-type"), "application/x-amz-json-1.1");
  Api china(ground_with({}));
  ApiCall call = harmless();
  call.region = "cn-north-1";
  ASSERT_TRUE(china.ask(web, call));
  EXPECT_EQ(web.asked[2].base, "https://ec2.cn-north-1.amazonaws.com.cn");
}

TEST(AwsApi, ARegionIsNoWayToAnotherHost) {
  Api api(ground_with({}));
  ScriptedWeb web([](const Question&) { return answered(200, kGood); });
  for (const char* wrong : {"evil.example/", "us-east-1.evil", "", "US-EAST-1", "us-east-1@x"}) {
    ApiCall call = harmless();
    call.region = wrong;
    EXPECT_FALSE(api.ask(web, call)) << wrong;
  }
  EXPECT_TRUE(web.asked.empty());
}

TEST(AwsApi, WhatPassesIsAskedAgainWithGrowingPauses) {
  Api api(ground_with({}));
  int left = 4;
  ScriptedWeb web([&](const Question&) {
    return left-- > 0 ? answered(503, refusal_xml("RequestLimitExceeded")) : answered(200, kGood);
  });
  ApiCall call = harmless();
  call.patience = std::chrono::minutes(2);
  EXPECT_TRUE(api.ask(web, call));
  ASSERT_EQ(web.pauses.size(), 4U);
  EXPECT_LE(web.pauses[0].count(), 500);
  EXPECT_LE(web.pauses[3].count(), 4000);
}

TEST(AwsApi, RetryAfterWinsAndPatienceEnds) {
  Api api(ground_with({}));
  ScriptedWeb web(
      [&](const Question&) { return answered(503, "", {{.name = "retry-after", .value = "7"}}); });
  ApiCall call = harmless();
  call.patience = std::chrono::seconds(15);
  const auto asked = api.ask(web, call);
  ASSERT_FALSE(asked);
  EXPECT_EQ(meaning_of(asked.error()), Meaning::again);
  EXPECT_TRUE(asked.error().maybe_done);
  EXPECT_EQ(web.pauses, (std::vector<std::chrono::milliseconds>{std::chrono::seconds(7),
                                                                std::chrono::seconds(7)}));
}

TEST(AwsApi, SilenceIsAskedAgainOnlyWhereTheCallSaysSo) {
  Api api(ground_with({}));
  ScriptedWeb web([&](const Question&) { return unanswered(false); });
  EXPECT_FALSE(api.ask(web, harmless()));
  EXPECT_EQ(web.asked.size(), 1U);
  bool first = true;
  ScriptedWeb lossy([&](const Question&) {
    return std::exchange(first, false) ? unanswered(true) : unanswered(false);
  });
  ApiCall call = harmless();
  call.silence = std::chrono::seconds(5);
  const auto asked = api.ask(lossy, call);
  ASSERT_FALSE(asked);
  EXPECT_GT(lossy.asked.size(), 2U);
  EXPECT_TRUE(asked.error().maybe_done);  // the first may have come through
}

TEST(AwsApi, AWrongClockIsMendedOnce) {
  Api api(ground_with({}));
  ScriptedWeb web([&](const Question& question) {
    const bool late = field_of(question, "x-amz-date") == "20270115T080000Z";
    return late ? answered(400, refusal_xml("RequestExpired"),
                           {{.name = "date", .value = "Fri, 15 Jan 2027 09:00:05 GMT"}})
                : answered(200, kGood);
  });
  EXPECT_TRUE(api.ask(web, harmless()));
  EXPECT_EQ(web.asked.size(), 2U);
  EXPECT_EQ(field_of(web.asked[1], "x-amz-date"), "20270115T090005Z");
  EXPECT_EQ(api.clock_offset_ms(), 3'605'000);
  // All later calls use the corrected clock.
  EXPECT_TRUE(api.ask(web, harmless()));
  EXPECT_EQ(web.asked.size(), 3U);
}

TEST(AwsApi, KeysThatAreWrongAreNoMatterOfTheClock) {
  Api api(ground_with({}));
  ScriptedWeb web([&](const Question&) {
    return answered(401, refusal_xml("AuthFailure"),
                    {{.name = "date", .value = "Fri, 15 Jan 2027 08:00:05 GMT"}});
  });
  const auto asked = api.ask(web, harmless());
  ASSERT_FALSE(asked);
  EXPECT_EQ(code_of(asked), "AuthFailure");
  EXPECT_EQ(web.asked.size(), 1U);
}

// An SSO login may expire some minutes before its keys do.
TEST(AwsApi, KeysAreReadAgainBeforeTheyExpireAndUsedUntilTheyDo) {
  std::map<std::string, std::string> variables{
      {"AWS_ACCESS_KEY_ID", "FIRST"},
      {"AWS_SECRET_ACCESS_KEY", "SECRET"},
      {"AWS_SESSION_TOKEN", "TOKEN"},
      {"AWS_CREDENTIAL_EXPIRATION", "2027-01-15T09:00:00Z"}};
  Api api({.env = [&](std::string_view name) -> std::optional<std::string> {
             const auto found = variables.find(std::string(name));
             return found == variables.end() ? std::nullopt : std::optional(found->second);
           },
           .home = "/nonexistent",
           .cache = {},
           .state = {}});
  ScriptedWeb web([](const Question&) { return answered(200, kGood); });
  const auto signed_by = [&](const std::string& id) {
    return api.ask(web, harmless()) &&
           field_of(web.asked.back(), "authorization").find("=" + id + "/") != std::string::npos;
  };
  EXPECT_TRUE(signed_by("FIRST"));
  variables["AWS_ACCESS_KEY_ID"] = "SECOND";
  EXPECT_TRUE(signed_by("FIRST"));
  variables.erase("AWS_SECRET_ACCESS_KEY");  // no keys are found now
  web.now += 57LL * 60'000;
  EXPECT_TRUE(signed_by("FIRST"));
  web.now += 4LL * 60'000;
  EXPECT_FALSE(api.ask(web, harmless()));
  variables["AWS_SECRET_ACCESS_KEY"] = "SECRET";
  variables["AWS_CREDENTIAL_EXPIRATION"] = "2027-01-15T10:00:00Z";
  EXPECT_TRUE(signed_by("SECOND"));
}

TEST(AwsApi, WithoutKeysNobodyIsAsked) {
  Api api({.env = [](std::string_view) { return std::optional<std::string>(); },
           .home = "/nonexistent",
           .cache = {},
           .state = {}});
  ScriptedWeb web([](const Question&) { return answered(200, kGood); });
  const auto asked = api.ask(web, harmless());
  ASSERT_FALSE(asked);
  EXPECT_EQ(asked.error().kind, ApiFailure::Kind::no_keys);
  EXPECT_EQ(asked.error().error().code, Errc::not_found);
  EXPECT_TRUE(web.asked.empty());
}

TEST(AwsApi, PagesAreReadToTheEnd) {
  Api api(ground_with({}));
  ScriptedWeb web([&](const Question& question) {
    const bool second = question.body.find("NextToken=more%2F1") != std::string::npos;
    return answered(200, second ? "<R><set><item>b</item></set><nextToken/></R>"
                                : "<R><set><item>a</item></set><nextToken>more/1</nextToken></R>");
  });
  const auto items = api.ask_pages(web, Query("DescribeInstances"), "eu-west-1", "set");
  ASSERT_TRUE(items);
  ASSERT_EQ(items->size(), 2U);
  EXPECT_EQ((*items)[1].value, "b");
}

TEST(AwsApi, AnAnswerWithoutAnEndIsNone) {
  Api api(ground_with({}));
  ScriptedWeb endless([&](const Question&) {
    return answered(200, "<R><set><item>a</item></set><nextToken>more</nextToken></R>");
  });
  EXPECT_FALSE(api.ask_pages(endless, Query("DescribeInstances"), "eu-west-1", "set"));
  ScriptedWeb half([&](const Question&) { return answered(200, "<R><set><item>a</it"); });
  const auto cut = api.ask_xml(half, harmless());
  ASSERT_FALSE(cut);
  EXPECT_TRUE(cut.error().maybe_done);
}

}  // namespace
}  // namespace lockstep::cloud::aws
