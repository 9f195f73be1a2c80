#include "cloud/gcp/launch.h"

#include "cloud/gcp/firewall.h"
#include "cloud/gcp/gcp_testing.h"
#include "cloud/gcp/requests.h"
#include "cloud/gcp/values.h"

#include <fmt/core.h>
#include <gtest/gtest.h>

namespace lockstep::cloud::gcp {
namespace {

using testing::Google;
using testing::operation;
using Kind = LaunchOutcome::Kind;

constexpr const char* kInsert =
    "POST /compute/v1/projects/proj/zones/us-central1-a/instances?requestId=";
constexpr const char* kBulk =
    "POST /compute/v1/projects/proj/zones/us-central1-a/instances/bulkInsert?requestId=";
constexpr const char* kWait =
    "POST /compute/v1/projects/proj/zones/us-central1-a/operations/operation-1/wait";
constexpr const char* kGet = "GET /compute/v1/projects/proj/zones/us-central1-a/instances/ls-";

class GcpLaunch : public ::testing::Test {
 protected:
  Google google;
  Api api{testing::user_keys(), testing::bare_ground()};
  LaunchSpec spec = testing::sample_spec();

  LaunchCall call() const { return make_call(api, spec, "projects/u/global/images/i", 200); }
  LaunchOutcome launch_it() { return launch(api, google.web, spec, call()); }
  LaunchOutcome resolve_it(std::int64_t age_ms = 1000) {
    return resolve(api, google.web, spec, call(), google.web.now - age_ms);
  }
  std::string ours(std::string_view intent = "abcdefghij0123456789") const {
    return fmt::format(
        R"({{"name":"x","labels":{{"lockstep-intent":"{}","lockstep-owner":"owner00000000001"}}}})",
        intent);
  }
};

TEST_F(GcpLaunch, IsAnsweredWhenTheOperationIsDone) {
  google.says(kInsert, 200, operation("RUNNING"));
  google.says(kWait, 200, operation("DONE"));
  const LaunchOutcome outcome = launch_it();
  EXPECT_EQ(outcome.kind, Kind::answered);
  EXPECT_EQ(outcome.ids, std::vector<std::string>{"ls-abcdefghij0123456789-2-0"});
  EXPECT_EQ(google.web.asked[1].body, call().body);
  EXPECT_NE(google.web.asked[1].target.find(request_id(spec)), std::string::npos);
}

TEST_F(GcpLaunch, IsRefusedThoughItWasTaken) {
  google.says(kInsert, 200, operation("RUNNING"));
  google.says(kWait, 200,
              operation("DONE", R"({"code":"ZONE_RESOURCE_POOL_EXHAUSTED","message":"no room"})"));
  const LaunchOutcome outcome = launch_it();
  EXPECT_EQ(outcome.kind, Kind::refused);
  EXPECT_EQ(outcome.refusal, Refusal::next_zone);
  EXPECT_EQ(outcome.code, "ZONE_RESOURCE_POOL_EXHAUSTED");
  EXPECT_EQ(outcome.message, "no room");
}

TEST_F(GcpLaunch, OfAGangIsOneCall) {
  spec.count = 3;
  google.says(kBulk, 200, operation("DONE"));
  const LaunchOutcome outcome = launch_it();
  EXPECT_EQ(outcome.kind, Kind::answered);
  ASSERT_EQ(outcome.ids.size(), 3U);
  EXPECT_EQ(outcome.ids[2], "ls-abcdefghij0123456789-2-2");
}

TEST_F(GcpLaunch, WithoutAnAnswerIsUnknown) {
  google.loses(kInsert, true);
  EXPECT_EQ(launch_it().kind, Kind::unknown);
  EXPECT_EQ(google.web.count("requestId"), 1U) << "the journal comes first";
}

TEST_F(GcpLaunch, UnderATakenNameIsOursByItsLabels) {
  constexpr const char* kTaken =
      R"({"error":{"message":"exists","errors":[{"reason":"alreadyExists"}]}})";
  google.says(kInsert, 409, kTaken);
  google.says(kGet, 200, ours());
  EXPECT_EQ(launch_it().kind, Kind::answered);
  google.says(kInsert, 409, kTaken);
  google.says(kGet, 200, ours("somebodyelses"));
  const LaunchOutcome foreign = launch_it();
  EXPECT_EQ(foreign.kind, Kind::refused);
  EXPECT_EQ(foreign.refusal, Refusal::stop);
}

TEST_F(GcpLaunch, IsResolvedByItsName) {
  google.says(kGet, 200, ours());
  EXPECT_EQ(resolve_it().kind, Kind::answered);
  EXPECT_EQ(google.web.count("requestId"), 0U);
}

TEST_F(GcpLaunch, IsResolvedByTheSameRequestWhereItIsNotThereYet) {
  google.says(kInsert, 200, operation("DONE"));
  EXPECT_EQ(resolve_it().kind, Kind::answered);
  EXPECT_EQ(google.web.count(request_id(spec)), 1U);
}

TEST_F(GcpLaunch, OfLongAgoIsNotMadeByAskingForIt) {
  const LaunchOutcome outcome = resolve_it(20LL * 60'000);
  EXPECT_EQ(outcome.kind, Kind::refused);
  EXPECT_EQ(outcome.code, "");
  EXPECT_EQ(google.web.count("requestId"), 0U);
}

TEST_F(GcpLaunch, IsNotTakenForUnmadeWhereTheSecondRequestGoesAstray) {
  for (int i = 0; i < 60; ++i)
    google.loses(kInsert, false);
  EXPECT_EQ(resolve_it().kind, Kind::unknown);
  // For a first launch the failure is certain.
  const LaunchOutcome first = launch_it();
  EXPECT_EQ(first.kind, Kind::refused);
  EXPECT_EQ(first.code, "unreachable");
}

TEST_F(GcpLaunch, StaysUnknownWhileNobodyAnswers) {
  for (int i = 0; i < 60; ++i)
    google.loses(kGet, false);
  EXPECT_EQ(resolve_it().kind, Kind::unknown);
}

TEST_F(GcpLaunch, LeavesThePortOpenToOtherRentals) {
  google.says("GET /compute/v1/projects/proj/global/firewalls/", 200,
              R"({"sourceRanges":["203.0.113.0/24"]})");
  google.says("PATCH /compute/v1/projects/proj/global/firewalls/", 200, operation("DONE"));
  ASSERT_TRUE(open_also_to(api, google.web, spec.owner, "198.51.100.7/32"));
  EXPECT_EQ(google.web.asked.back().body,
            R"({"sourceRanges":["198.51.100.7/32","203.0.113.0/24"]})");
  google.says("GET /compute/v1/projects/proj/global/firewalls/", 200,
              R"({"sourceRanges":["198.51.100.7/32","203.0.113.0/24"]})");
  ASSERT_TRUE(open_also_to(api, google.web, spec.owner, "198.51.100.7/32"));
  google.says("GET /compute/v1/projects/proj/global/firewalls/", 200,
              R"({"sourceRanges":["198.51.100.7/32","203.0.113.0/24"]})");
  ASSERT_TRUE(open_to(api, google.web, spec.owner, {"203.0.113.0/24", "198.51.100.7/32"}));
  EXPECT_TRUE(google.used_up());
  EXPECT_EQ(google.web.asked.back().method, "GET") << "nothing is changed";
}

}  // namespace
}  // namespace lockstep::cloud::gcp
