#include "cloud/aws/launcher.h"

#include "cloud/scripted_web_testing.h"

#include <gtest/gtest.h>

namespace lockstep::cloud::aws {
namespace {

using cloud::testing::answered;
using cloud::testing::ScriptedWeb;
using cloud::testing::unanswered;
using Kind = LaunchOutcome::Kind;

Ground keys_ground() {
  return {.env = [](std::string_view name) -> std::optional<std::string> {
            if (name == "AWS_ACCESS_KEY_ID") return "AKID";
            if (name == "AWS_SECRET_ACCESS_KEY") return "SECRET";
            return std::nullopt;
          },
          .home = "/proc/none",
          .cache = {},
          .state = {}};
}

Reply refused_with(const char* code, int status = 400) {
  return answered(status, std::string("<Response><Errors><Error><Code>") + code +
                              "</Code><Message>no</Message></Error></Errors></Response>");
}

Reply launched_as(const char* id) {
  return answered(200, std::string("<RunInstancesResponse><instancesSet><item><instanceId>") + id +
                           "</instanceId></item></instancesSet></RunInstancesResponse>");
}

Reply nothing_listed() {
  return answered(200, "<DescribeInstancesResponse><reservationSet/></DescribeInstancesResponse>");
}

LaunchCall some_call() {
  return {.region = "us-east-1",
          .zone = "us-east-1a",
          .token = "t",
          .target = "RunInstances",
          .body = "Action=RunInstances&ClientToken=t"};
}

// Gives the answers in order and repeats the last one.
struct Course {
  std::vector<Reply> replies;
  std::size_t at = 0;

  Reply next(const Question& /*question*/) { return replies[std::min(at++, replies.size() - 1)]; }
};

LaunchOutcome launch_with(std::vector<Reply> replies) {
  Api api(keys_ground());
  Launcher launcher(api);
  Course course{std::move(replies)};
  ScriptedWeb web([&](const Question& question) { return course.next(question); });
  return launcher.launch(web, some_call());
}

LaunchOutcome resolve_with(std::vector<Reply> replies, std::int64_t age_ms) {
  Api api(keys_ground());
  Launcher launcher(api);
  Course course{std::move(replies)};
  ScriptedWeb web([&](const Question& question) { return course.next(question); });
  return launcher.resolve(web, some_call(), web.now - age_ms);
}

TEST(AwsLauncher, WhatWasNeverSentIsNotThere) {
  const LaunchOutcome outcome = launch_with({unanswered(false)});
  EXPECT_EQ(outcome.kind, Kind::refused);
  EXPECT_EQ(outcome.refusal, Refusal::next_region);
}

TEST(AwsLauncher, WhatWasSentWithoutAnAnswerIsUnknown) {
  EXPECT_EQ(launch_with({unanswered(true)}).kind, Kind::unknown);
  EXPECT_EQ(launch_with({unanswered(true), unanswered(false)}).kind, Kind::unknown);
  EXPECT_EQ(launch_with({refused_with("InternalError", 500)}).kind, Kind::unknown);
  EXPECT_EQ(launch_with({answered(200, "<half")}).kind, Kind::unknown);
  EXPECT_EQ(launch_with({answered(200, "<RunInstancesResponse/>")}).kind, Kind::unknown);
}

TEST(AwsLauncher, ARefusalThatIsNotOfTheLaunchSaysNothingOfAnEarlierTry) {
  for (const char* code : {"AuthFailure", "ExpiredToken", "UnauthorizedOperation", "Throttling",
                           "SomethingNew", "PendingVerification"}) {
    EXPECT_EQ(launch_with({unanswered(true), refused_with(code)}).kind, Kind::unknown) << code;
    EXPECT_EQ(launch_with({refused_with(code)}).kind, Kind::refused) << code;
  }
  for (const char* code :
       {"InsufficientInstanceCapacity", "VcpuLimitExceeded", "InvalidParameterValue"})
    EXPECT_EQ(launch_with({unanswered(true), refused_with(code)}).kind, Kind::refused) << code;
}

TEST(AwsLauncher, TheTokenDecidesSoonAfterTheCall) {
  const LaunchOutcome found = resolve_with({launched_as("i-1")}, 1000);
  EXPECT_EQ(found.kind, Kind::answered);
  EXPECT_EQ(found.ids, std::vector<std::string>{"i-1"});
  EXPECT_EQ(resolve_with({refused_with("InsufficientInstanceCapacity", 500)}, 1000).kind,
            Kind::refused);
}

TEST(AwsLauncher, OnlyARefusalOfTheLaunchResolvesIt) {
  for (const char* code : {"AuthFailure", "ExpiredToken", "UnauthorizedOperation", "Throttling",
                           "SomethingNew", "OptInRequired"})
    EXPECT_EQ(resolve_with({refused_with(code)}, 1000).kind, Kind::unknown) << code;
  EXPECT_EQ(resolve_with({unanswered(false)}, 1000).kind, Kind::unknown);
  EXPECT_EQ(resolve_with({unanswered(false, Errc::canceled)}, 1000).kind, Kind::unknown);
}

TEST(AwsLauncher, LongAfterTheCallTheListDecides) {
  const LaunchOutcome gone = resolve_with({nothing_listed()}, 60'000);
  EXPECT_EQ(gone.kind, Kind::refused);
  EXPECT_EQ(gone.code, "");
  EXPECT_EQ(resolve_with({unanswered(true)}, 60'000).kind, Kind::unknown);
  EXPECT_EQ(resolve_with({refused_with("AuthFailure")}, 60'000).kind, Kind::unknown);
}

TEST(AwsLauncher, ATokenThatWasTakenHasItsMachinesListed) {
  const char* listed =
      "<R><reservationSet><item><instancesSet><item><instanceId>i-7</instanceId></item>"
      "</instancesSet></item></reservationSet></R>";
  const LaunchOutcome found =
      launch_with({refused_with("IdempotentParameterMismatch"), answered(200, listed)});
  EXPECT_EQ(found.kind, Kind::answered);
  EXPECT_EQ(found.ids, std::vector<std::string>{"i-7"});
  EXPECT_EQ(launch_with({refused_with("IdempotentParameterMismatch"), nothing_listed()}).kind,
            Kind::unknown);
}

TEST(AwsLauncher, WhoStopsItHasNothingWhereNothingWasSent) {
  EXPECT_EQ(launch_with({unanswered(false, Errc::canceled)}).code, "Canceled");
  EXPECT_EQ(launch_with({unanswered(true, Errc::canceled)}).kind, Kind::unknown);
}

TEST(AwsNetwork, NobodyElsesRuleIsClosed) {
  Api api(keys_ground());
  std::vector<std::string> bodies;
  ScriptedWeb web([&](const Question& question) {
    bodies.push_back(question.body);
    return answered(200, "<RevokeSecurityGroupIngressResponse/>");
  });
  const Group group{.id = "sg-1",
                    .vpc = "vpc-1",
                    .ssh_from = {"198.51.100.7/32", "203.0.113.0/24", "192.0.2.9/32"},
                    .inside = true};
  ASSERT_TRUE(close_others(web, api, "us-east-1", group, {"192.0.2.9/32", "203.0.113.0/24"}));
  ASSERT_EQ(bodies.size(), 1U);
  EXPECT_NE(bodies[0].find("198.51.100.7"), std::string::npos) << bodies[0];
}

}  // namespace
}  // namespace lockstep::cloud::aws
