#include "cloud/aws/error_table.h"

#include <gtest/gtest.h>

namespace lockstep::cloud::aws {
namespace {

Refusal refused(std::string_view code, int status = 400, bool elsewhere = false) {
  return refusal_of(meaning_of(status, code), elsewhere);
}

TEST(AwsErrors, EachCodeMeansWhatToDoNext) {
  EXPECT_EQ(refused("InsufficientInstanceCapacity", 500), Refusal::next_zone);
  EXPECT_EQ(refused("Unsupported"), Refusal::next_zone);
  EXPECT_EQ(refused("SpotMaxPriceTooLow"), Refusal::next_zone);
  EXPECT_EQ(refused("VcpuLimitExceeded"), Refusal::next_region);
  EXPECT_EQ(refused("MaxSpotInstanceCountExceeded"), Refusal::next_region);
  EXPECT_EQ(refused("PendingVerification"), Refusal::provider_out);
  EXPECT_EQ(refused("ExpiredTokenException"), Refusal::provider_out);
  EXPECT_EQ(refused("UnauthorizedOperation", 403), Refusal::provider_out);
  EXPECT_EQ(refused("InvalidAMIID.NotFound"), Refusal::stop);
  EXPECT_EQ(refused("InvalidUserData.Malformed"), Refusal::stop);
  EXPECT_EQ(refused("SomethingNew"), Refusal::unknown);
}

TEST(AwsErrors, KeysThatWorkElsewhereAreOutInOneRegionOnly) {
  for (const char* code : {"AuthFailure", "OptInRequired"}) {
    EXPECT_EQ(refused(code, 401, false), Refusal::provider_out);
    EXPECT_EQ(refused(code, 401, true), Refusal::next_region);
  }
  EXPECT_EQ(refused("InvalidClientTokenId", 403, true), Refusal::provider_out);
}

TEST(AwsErrors, WhatPassesIsAskedAgain) {
  for (const char* code : {"RequestLimitExceeded", "ThrottlingException", "Throttling",
                           "InternalError", "Unavailable", "EC2ThrottledException"})
    EXPECT_EQ(meaning_of(400, code), Meaning::again) << code;
  EXPECT_EQ(meaning_of(503, ""), Meaning::again);
  EXPECT_EQ(meaning_of(429, "Odd"), Meaning::again);
  EXPECT_EQ(meaning_of(400, ""), Meaning::unknown);
  // AWS refuses a launch for lack of capacity with HTTP 500, and a repeat would not help.
  EXPECT_EQ(meaning_of(500, "InsufficientInstanceCapacity"), Meaning::next_zone);
}

TEST(AwsErrors, AllThreeEnvelopesAreRead) {
  const ErrorWords ec2 = parse_error(
      "<?xml version=\"1.0\"?><Response><Errors><Error><Code>VcpuLimitExceeded</Code><Message>You "
      "have\nrequested</Message></Error></Errors><RequestID>r</RequestID></Response>");
  EXPECT_EQ(ec2.code, "VcpuLimitExceeded");
  EXPECT_EQ(ec2.message.find('\n'), std::string::npos);
  const ErrorWords sts = parse_error(
      "<ErrorResponse "
      "xmlns=\"https://sts.amazonaws.com/doc/2011-06-15/\"><Error><Type>Sender</Type>"
      "<Code>InvalidClientTokenId</Code><Message>The security "
      "token</Message></Error></ErrorResponse>");
  EXPECT_EQ(sts.code, "InvalidClientTokenId");
  const ErrorWords json =
      parse_error(R"({"__type":"com.amazon.coral#AccessDeniedException","Message":"no"})");
  EXPECT_EQ(json.code, "AccessDeniedException");
  EXPECT_EQ(json.message, "no");
  EXPECT_EQ(parse_error("<html><body>502</body></html>").code, "");
  EXPECT_EQ(parse_error("").code, "");
}

TEST(AwsErrors, TheEncodedBlobIsCut) {
  const ErrorWords error = parse_error(
      "<Response><Errors><Error><Code>UnauthorizedOperation</Code><Message>You are not authorized "
      "to "
      "perform this operation. User: arn:aws:iam::1:user/a is not authorized. Encoded "
      "authorization "
      "failure message: SECRETBLOB</Message></Error></Errors></Response>");
  EXPECT_EQ(error.message,
            "You are not authorized to perform this operation. User: arn:aws:iam::1:user/a is not "
            "authorized.");
}

TEST(AwsErrors, ZonesInTheMessageAreFound) {
  const std::string_view message =
      "We currently do not have sufficient p4d.24xlarge capacity in the Availability Zone you "
      "requested (us-east-1a). You can currently get p4d.24xlarge capacity by not specifying an "
      "Availability Zone in your request or choosing us-east-1b, us-east-1d.";
  EXPECT_EQ(zones_named(message, "us-east-1"),
            (std::vector<std::string>{"us-east-1b", "us-east-1d"}));
  EXPECT_TRUE(zones_named(message, "us-west-2").empty());
  EXPECT_TRUE(zones_named("no room in us-east-1a", "us-east-1").empty());
  EXPECT_TRUE(zones_named("choosing us-east-1", "us-east-1").empty());
}

TEST(ErrorTable, AnAccountWithoutTheRoleForSpotHasNoSpotAndAllTheRest) {
  const Meaning meaning = meaning_of(403, "AuthFailure.ServiceLinkedRoleCreationNotPermitted");
  EXPECT_EQ(meaning, Meaning::no_spot);
  EXPECT_EQ(refusal_of(meaning, true), Refusal::spot_out);
  EXPECT_EQ(meaning_of(403, "AuthFailure"), Meaning::keys_here);
}

}  // namespace
}  // namespace lockstep::cloud::aws
