#include "codec/sigv4.h"

#include "codec/sha256.h"

#include <gtest/gtest.h>

namespace lockstep::codec {
namespace {

constexpr std::int64_t kSuiteTime = 1440938160;  // 2015-08-30 12:36:00
const SigV4Key kSuiteKey{"AKIDEXAMPLE", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"};
const char* const kSuiteToken = "6e86291e8372ff2a2260956d9b8aae1d763fbf315fa00fa31553b73ebf194267";
const char* const kStsToken =
    "AQoDYXdzEPT//////////wEXAMPLEtc764bNrC9SAPBSM22wDOk4x4HIZ8j4FZTwdQWLWsKWHGBuFqwAeMicRXmxfpSP"
    "fIeoIYRqTflfKD8YUuwthAx7mSEI/qkPpKPi/kMcGdQrmGdeehM4IC1NtBmUpp2wUE8phUZampKsburEDy0KPkyQDYwT"
    "7WZ0wq5VSXDvp75YU9HFvlRd8Tx6q6fE8YQcHNVXAkiY9q6d+xo0rKwT38xVqr7ZD0u0iPPkUL64lIZbqBAz+scqKmlz"
    "m8FDrypNC9Yjc8fPOLn9FX9KSYvKTr4rvx3iSIlTJabIQwj2ICCR/oLxBA==";

// The 38 published cases of AWS for this signature (aws-sig-v4-test-suite, in aws-c-auth), all for
// example.amazonaws.com, us-east-1, "service". This file repeats the requests. Python's hmac
// computed the signatures, which equal the published ones. "@" stands for every mark that encoding
// leaves unchanged. The last two cases have a body.
struct SuiteCase {
  const char* name;
  const char* method;
  const char* target;
  HeaderFields headers;
  const char* signature;
};
const SuiteCase kSuite[] = {
    {"get-header-key-duplicate",
     "GET",
     "/",
     {{"My-Header1", "value2"}, {"My-Header1", "value2"}, {"My-Header1", "value1"}},
     "c9d5ea9f3f72853aea855b47ea873832890dbdd183b4468f858259531a5138ea"},
    {"get-header-value-multiline",
     "GET",
     "/",
     {{"My-Header1", "value1\n  value2\n     value3"}},
     "cfd34249e4b1c8d6b91ef74165d41a32e5fab3306300901bb65a51a73575eefd"},
    {"get-header-value-order",
     "GET",
     "/",
     {{"My-Header1", "value4"},
      {"My-Header1", "value1"},
      {"My-Header1", "value3"},
      {"My-Header1", "value2"}},
     "08c7e5a9acfcfeb3ab6b2185e75ce8b1deb5e634ec47601a50643f830c755c01"},
    {"get-header-value-trim",
     "GET",
     "/",
     {{"My-Header1", " value1"}, {"My-Header2", " \"a   b   c\""}},
     "acc3ed3afb60bb290fc8d2dd0098b9911fcaa05412b367055dee359757a9c736"},
    {"get-relative-normalized",
     "GET",
     "/example/..",
     {},
     "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31"},
    {"get-relative-unnormalized",
     "GET",
     "/example/..",
     {},
     "eca7ead57bb5aa5c8e28007acd4ff04e1ff9a0ff3b237ec1554a184887ff9282"},
    {"get-relative-relative-normalized",
     "GET",
     "/example1/example2/../..",
     {},
     "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31"},
    {"get-relative-relative-unnormalized",
     "GET",
     "/example1/example2/../..",
     {},
     "dc33e0856fd4baca4d7aa2146c38958283844764f38c74252a333df5e613003b"},
    {"get-slash-dot-slash-normalized",
     "GET",
     "/./",
     {},
     "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31"},
    {"get-slash-dot-slash-unnormalized",
     "GET",
     "/./",
     {},
     "68714168e6557f8f2de0ef956fc24dc2593a4bd2961f8df51898d8a134695145"},
    {"get-slash-normalized",
     "GET",
     "//",
     {},
     "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31"},
    {"get-slash-unnormalized",
     "GET",
     "//",
     {},
     "c88bcd3d312d75078c0cd961d6deae3f4c754924b01669efcfcb439fd5e5b76e"},
    {"get-slash-pointless-dot-normalized",
     "GET",
     "/./example",
     {},
     "ef75d96142cf21edca26f06005da7988e4f8dc83a165a80865db7089db637ec5"},
    {"get-slash-pointless-dot-unnormalized",
     "GET",
     "/./example",
     {},
     "beb03f223f7deae4146464f06e29eebbee9c8afbe15c290cf07aa8b119e14cff"},
    {"get-slashes-normalized",
     "GET",
     "//example//",
     {},
     "9a624bd73a37c9a373b5312afbebe7a714a789de108f0bdfe846570885f57e84"},
    {"get-slashes-unnormalized",
     "GET",
     "//example//",
     {},
     "87cca117541a147f6df867677d98a7d80dff226d2bfca9e4ffa899665623c7e5"},
    {"get-space-normalized",
     "GET",
     "/example space/",
     {},
     "652487583200325589f1fba4c7e578f72c47cb61beeca81406b39ddec1366741"},
    {"get-space-unnormalized",
     "GET",
     "/example space/",
     {},
     "652487583200325589f1fba4c7e578f72c47cb61beeca81406b39ddec1366741"},
    {"get-unreserved",
     "GET",
     "/@",
     {},
     "07ef7494c76fa4850883e2b006601f940f8a34d404d0cfa977f52a65bbf5f24f"},
    {"get-utf8",
     "GET",
     "/\xe1\x88\xb4",
     {},
     "8318018e0b0f223aa2bbf98705b62bb787dc9c0e678f255a891fd03141be5d85"},
    {"get-vanilla-empty-query-key",
     "GET",
     "/?Param1=value1",
     {},
     "a67d582fa61cc504c4bae71f336f98b97f1ea3c7a6bfe1b6e45aec72011b9aeb"},
    {"get-vanilla-query-order-encoded",
     "GET",
     "/?Param-3=Value3&Param=Value2&%E1%88%B4=Value1",
     {},
     "371d3713e185cc334048618a97f809c9ffe339c62934c032af5a0e595648fcac"},
    {"get-vanilla-query-order-key-case",
     "GET",
     "/?Param2=value2&Param1=value1",
     {},
     "b97d918cfa904a5beff61c982a1b6f458b799221646efd99d3219ec94cdf2500"},
    {"get-vanilla-query-unreserved",
     "GET",
     "/?@=@",
     {},
     "9c3e54bfcdf0b19771a7f523ee5669cdf59bc7cc0884027167c21bb143a40197"},
    {"get-vanilla-query",
     "GET",
     "/",
     {},
     "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31"},
    {"get-vanilla-utf8-query",
     "GET",
     "/?\xe1\x88\xb4=bar",
     {},
     "2cdec8eed098649ff3a119c94853b13c643bcf08f8b0a1d91e12c9027818dd04"},
    {"get-vanilla-with-session-token",
     "GET",
     "/",
     {},
     "07ec1639c89043aa0e3e2de82b96708f198cceab042d4a97044c66dd9f74e7f8"},
    {"get-vanilla",
     "GET",
     "/",
     {},
     "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31"},
    {"post-header-key-case",
     "POST",
     "/",
     {},
     "5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b"},
    {"post-header-key-sort",
     "POST",
     "/",
     {{"My-Header1", "value1"}},
     "c5410059b04c1ee005303aed430f6e6645f61f4dc9e1461ec8f8916fdf18852c"},
    {"post-header-value-case",
     "POST",
     "/",
     {{"My-Header1", "VALUE1"}},
     "cdbc9802e29d2942e5e10b5bccfdd67c5f22c7c4e8ae67b53629efa58b974b7d"},
    {"post-sts-header-after",
     "POST",
     "/",
     {},
     "5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b"},
    {"post-sts-header-before",
     "POST",
     "/",
     {},
     "85d96828115b5dc0cfc3bd16ad9e210dd772bbebba041836c64533a82be05ead"},
    {"post-vanilla-empty-query-value",
     "POST",
     "/?Param1=value1",
     {},
     "28038455d6de14eafc1f9222cf5aa6f1a96197d7deb8263271d420d138af7f11"},
    {"post-vanilla-query",
     "POST",
     "/?Param1=value1",
     {},
     "28038455d6de14eafc1f9222cf5aa6f1a96197d7deb8263271d420d138af7f11"},
    {"post-vanilla",
     "POST",
     "/",
     {},
     "5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b"},
    {"post-x-www-form-urlencoded-parameters",
     "POST",
     "/",
     {{"Content-Type", "application/x-www-form-urlencoded; charset=utf-8"},
      {"Content-Length", "13"}},
     "328d1b9eaadca9f5818ef05e8392801e091653bafec24fcab71e7344e7f51422"},
    {"post-x-www-form-urlencoded",
     "POST",
     "/",
     {{"Content-Type", "application/x-www-form-urlencoded"}, {"Content-Length", "13"}},
     "d3875051da38690788ef43de4db0d8f280229d82040bfac253562e56c3f20e0b"},
};

SigV4Request suite_request(const SuiteCase& each) {
  const std::string name = each.name;
  std::string target = each.target;
  for (std::size_t at = 0; (at = target.find('@', at)) != std::string::npos;)
    target.replace(at, 1, "-._~0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz");
  const std::size_t mark = std::min(target.find('?'), target.size());
  SigV4Request request{.region = "us-east-1",
                       .service = "service",
                       .unix_time = kSuiteTime,
                       .method = each.method,
                       .host = "example.amazonaws.com",
                       .path = target.substr(0, mark),
                       .query = target.substr(std::min(mark + 1, target.size())),
                       .headers = each.headers};
  if (name.ends_with("-unnormalized")) request.normalize = SigV4Request::Path::as_is;
  if (name.find("urlencoded") != std::string::npos) {
    request.body = "Param1=value1";
    request.headers.emplace_back("x-amz-content-sha256", hex(sha256(request.body)));
  }
  return request;
}

TEST(SigV4, ThePublishedCases) {
  ASSERT_EQ(std::size(kSuite), 38U);
  for (const SuiteCase& each : kSuite) {
    SigV4Key key = kSuiteKey;
    if (std::string(each.name) == "get-vanilla-with-session-token") key.session_token = kSuiteToken;
    if (std::string(each.name) == "post-sts-header-before") key.session_token = kStsToken;
    const HeaderFields added = sigv4_sign(key, suite_request(each));
    const std::string wanted = std::string("Signature=") + each.signature;
    EXPECT_TRUE(added.back().second.ends_with(wanted))
        << each.name << ": " << added.back().second << "\n"
        << sigv4_canonical(key, suite_request(each));
    EXPECT_EQ(added.size(), key.session_token.empty() ? 2U : 3U);
  }
}

TEST(SigV4, WhatIsAdded) {
  SigV4Key key = kSuiteKey;
  key.session_token = kSuiteToken;
  const SigV4Request request = suite_request(kSuite[27]);
  EXPECT_EQ(hex(sha256(sigv4_canonical(kSuiteKey, request))),
            "bb579772317eb040ac9ed261061d46c1f17a8133879d6129b6e1c25292927e63");
  const HeaderFields added = sigv4_sign(key, request);
  ASSERT_EQ(added.size(), 3U);
  EXPECT_EQ(added[0], (std::pair<std::string, std::string>("x-amz-date", "20150830T123600Z")));
  EXPECT_EQ(added[1], (std::pair<std::string, std::string>("x-amz-security-token", kSuiteToken)));
  EXPECT_EQ(added[2].first, "authorization");
  EXPECT_TRUE(added[2].second.starts_with(
      "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20150830/us-east-1/service/aws4_request, "
      "SignedHeaders=host;x-amz-date;x-amz-security-token, Signature="))
      << added[2].second;
}

// This is a call to EC2, as botocore 1.29 signs it.
TEST(SigV4, ACallToEc2) {
  const SigV4Request request{
      .region = "us-east-1",
      .service = "ec2",
      .unix_time = kSuiteTime,
      .host = "ec2.us-east-1.amazonaws.com",
      .headers = {{"Content-Type", "application/x-www-form-urlencoded; charset=utf-8"}},
      .body = "Action=DescribeRegions&Version=2016-11-15"};
  EXPECT_EQ(hex(sha256(request.body)),
            "903451d1f3cda66f6ac7101b5810af53eb3ce6b47c5162b0b2238ce9086b6a0d");
  EXPECT_EQ(hex(sha256(sigv4_canonical(kSuiteKey, request))),
            "b4917ff92793eea5c3e18e56eb51329f9f8fe7764fa953e0d4390bbc1fe8cf45");
  EXPECT_EQ(sigv4_sign(kSuiteKey, request).back().second,
            "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20150830/us-east-1/ec2/aws4_request, "
            "SignedHeaders=content-type;host;x-amz-date, "
            "Signature=0961b80cfe2d492b65901a9220582465d0ed2094d2964a79fe0e9fdd612541ab");
}

TEST(SigV4, TimesOutsideTheCalendarAreNotPrinted) {
  EXPECT_EQ(sigv4_time(0), "19700101T000000Z");
  EXPECT_EQ(sigv4_time(-1), "19700101T000000Z");
  EXPECT_EQ(sigv4_time(253402300799), "99991231T235959Z");
  EXPECT_EQ(sigv4_time(253402300800), "19700101T000000Z");
}

}  // namespace
}  // namespace lockstep::codec
