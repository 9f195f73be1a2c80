#include "cloud/gcp/api_error.h"

#include "codec/json.h"

#include <gtest/gtest.h>

namespace lockstep::cloud::gcp {
namespace {

ApiFailure refused_with(std::string code, std::string message = "m", int status = 400) {
  return refusal_with(status, std::move(code), std::move(message));
}

TEST(ApiError, MeansWhatTheTableSays) {
  const std::vector<std::pair<ApiFailure, Refusal>> cases = {
      {refused_with("ZONE_RESOURCE_POOL_EXHAUSTED"), Refusal::next_zone},
      {refused_with("ZONE_RESOURCE_POOL_EXHAUSTED_WITH_DETAILS"), Refusal::next_zone},
      {refused_with("VM_MIN_COUNT_NOT_REACHED"), Refusal::next_zone},
      {refused_with("QUOTA_EXCEEDED", "Quota 'NVIDIA_L4_GPUS' exceeded. Limit: 0 in region x."),
       Refusal::next_region},
      {refused_with("quotaExceeded", "x", 403), Refusal::next_region},
      {refused_with("QUOTA_EXCEEDED", "Quota 'GPUS_ALL_REGIONS' exceeded.  Limit: 0.0 globally."),
       Refusal::provider_out},
      {refused_with("accessNotConfigured", "x", 403), Refusal::provider_out},
      {refused_with("IAM_PERMISSION_DENIED", "x", 403), Refusal::provider_out},
      {refused_with("VPC_NOT_FOUND"), Refusal::provider_out},
      {refused_with("notFound", "The resource 'projects/p/global/networks/default' was not found"),
       Refusal::provider_out},
      {refused_with("invalid",
                    "Invalid value for field 'resource.machineType': 'zones/a/machineTypes/x'. The "
                    "referenced resource does not exist."),
       Refusal::next_zone},
      {refused_with("RESOURCE_NOT_FOUND", "machineTypes/x was not found"), Refusal::next_zone},
      {refused_with("notFound", "The resource 'projects/p/global/images/x' was not found", 404),
       Refusal::stop},
      {refused_with("invalid", "Invalid value for field 'resource.name'"), Refusal::stop},
      {refused_with("invalid", "Invalid value for field 'zone': 'x-y1-z'. Unknown."),
       Refusal::next_zone},
      {refused_with("NEVER_SEEN"), Refusal::unknown},
      {refused_with("HTTP 503", "m", 503), Refusal::next_zone},
      {refused_with("whatever", "m", 401), Refusal::provider_out},
  };
  for (const auto& [error, meaning] : cases)
    EXPECT_EQ(meaning_of(error), meaning) << error.code << ": " << error.message;
}

TEST(ApiError, PassesWhereGoogleIsBusy) {
  EXPECT_TRUE(is_passing(refused_with("rateLimitExceeded", "m", 403)));
  EXPECT_TRUE(is_passing(refused_with("HTTP 429", "m", 429)));
  EXPECT_TRUE(is_passing(refused_with("backendError", "m", 503)));
  EXPECT_FALSE(is_passing(refused_with("ZONE_RESOURCE_POOL_EXHAUSTED", "m", 503)));
  EXPECT_FALSE(is_passing(refused_with("quotaExceeded", "m", 403)));
  EXPECT_FALSE(is_passing(refused_with("forbidden", "m", 403)));
}

TEST(ApiError, OfAnAnswerIsTheCodeThatSaysMost) {
  const ApiFailure error = error_of_answer(
      403,
      R"({"error":{"code":403,"message":"Compute Engine API has not been used.\nEnable it by visiting https://x","status":"PERMISSION_DENIED",
      "errors":[{"reason":"strange"},{"reason":"accessNotConfigured"}],"details":[{"@type":"Help"},{"reason":"SERVICE_DISABLED"}]}})");
  EXPECT_EQ(error.code, "SERVICE_DISABLED");
  EXPECT_EQ(error.status, 403);
  EXPECT_EQ(error.message.find('\n'), std::string::npos);
  EXPECT_NE(error.message.find("https://x"), std::string::npos);

  // An unknown code must not be hidden behind a general code.
  EXPECT_EQ(
      error_of_answer(400, R"({"error":{"status":"INVALID_ARGUMENT","errors":[{"reason":"odd"}]}})")
          .code,
      "odd");
  EXPECT_EQ(error_of_answer(502, "<html>bad gateway</html>").code, "HTTP 502");
  const ApiFailure token =
      error_of_answer(400, R"({"error":"invalid_grant","error_description":"Bad Request"})");
  EXPECT_EQ(token.code, "invalid_grant");
  EXPECT_EQ(token.message, "Bad Request");
}

TEST(ApiError, OfAnOperationNamesZonesThatHaveIt) {
  ApiFailure error;
  EXPECT_FALSE(error_of_operation(codec::parse_json(R"({"status":"DONE"})"), error));
  const auto operation = codec::parse_json(
      R"({"status":"DONE","error":{"errors":[{"code":"SOMETHING","message":"first"},
      {"code":"ZONE_RESOURCE_POOL_EXHAUSTED_WITH_DETAILS","message":"no room","errorDetails":[
      {"help":{}},{"errorInfo":{"reason":"resource_availability","metadatas":{"zonesAvailable":"us-central1-b, us-central1-f"}}}]}]}})");
  ASSERT_TRUE(error_of_operation(operation, error));
  EXPECT_EQ(error.code, "ZONE_RESOURCE_POOL_EXHAUSTED_WITH_DETAILS");
  EXPECT_EQ(error.message, "no room");
  EXPECT_EQ(error.zones, (std::vector<std::string>{"us-central1-b", "us-central1-f"}));
  const LaunchOutcome outcome = outcome_of(error);
  EXPECT_EQ(outcome.kind, LaunchOutcome::Kind::refused);
  EXPECT_EQ(outcome.zones_to_try.size(), 2U);
}

TEST(ApiError, WithoutAnAnswerNothingIsKnown) {
  EXPECT_EQ(
      outcome_of(without_answer({.code = Errc::unavailable, .message = "cut", .hint = {}}, true))
          .kind,
      LaunchOutcome::Kind::unknown);
  EXPECT_EQ(
      outcome_of(without_answer({.code = Errc::canceled, .message = "stopped", .hint = {}}, true))
          .kind,
      LaunchOutcome::Kind::unknown);
  const LaunchOutcome unsent = outcome_of(
      without_answer({.code = Errc::unavailable, .message = "refused", .hint = {}}, false));
  EXPECT_EQ(unsent.kind, LaunchOutcome::Kind::refused);
  EXPECT_EQ(unsent.refusal, Refusal::provider_out);
}

}  // namespace
}  // namespace lockstep::cloud::gcp
