#include "page/gate.h"

#include <gtest/gtest.h>

namespace lockstep::page {
namespace {

constexpr std::string_view kToken = "0123456789abcdef";

using Fields = std::vector<std::pair<std::string, std::string>>;

http::Request request(const std::string& path, const Fields& fields,
                      const std::string& query = "") {
  return {.method = "GET", .path = path, .query = query, .fields = fields};
}

Gate gate(const std::string& bound = "127.0.0.1", const std::string& token = std::string(kToken)) {
  return Gate({.token = token, .bound = bound, .names = {"Node-7"}});
}

// Returns the status that a request gets. 0: it may pass.
int status_of(const Gate& gate, const http::Request& asked) {
  const auto answer = gate.turn_away(asked);
  return answer ? answer->status : 0;
}

std::string field_of(const http::Response& response, std::string_view name) {
  for (const auto& [known, value] : response.fields)
    if (known == name) return value;
  return {};
}

TEST(Gate, OnlyTheTokenOpensIt) {
  const Fields host = {{"host", "127.0.0.1:80"}};
  const auto with = [&](const std::string& name, const std::string& value) {
    Fields fields = host;
    fields.emplace_back(name, value);
    return fields;
  };
  EXPECT_EQ(status_of(gate(), request("/", host)), 403);
  EXPECT_EQ(
      status_of(gate(), request("/state", with("cookie", "lockstep_9f9f5111=0123456789abcdef"))),
      0);
  EXPECT_EQ(
      status_of(gate(), request("/", with("cookie", "a=b; lockstep_9f9f5111=0123456789abcdef"))),
      0);
  EXPECT_EQ(status_of(gate(), request("/", with("cookie", "lockstep_80=0123456789abcdef"))), 403);
  EXPECT_EQ(status_of(gate(), request("/", with("cookie", "lockstep_9f9f5111=0123456789abcdeF"))),
            403);
  EXPECT_EQ(status_of(gate(), request("/", with("cookie", "lockstep_9f9f5111="))), 403);
  EXPECT_EQ(
      status_of(gate(), request("/metrics", with("authorization", "Bearer 0123456789abcdef"))), 0);
  EXPECT_EQ(status_of(gate(), request("/metrics", with("authorization", "Bearer "))), 403);
  EXPECT_EQ(status_of(gate(), request("/", host, "token=")), 403);
  EXPECT_EQ(status_of(gate(), request("/", host, "token=0123456789abcde")), 403);
  // Only the page itself takes the token from the address.
  EXPECT_EQ(status_of(gate(), request("/state", host, "token=0123456789abcdef")), 403);
}

TEST(Gate, TheTokenInTheAddressBecomesACookie) {
  const auto answer =
      gate().turn_away(request("/", {{"host", "localhost:8080"}}, "x&token=0123456789abcdef"));
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->status, 303);
  EXPECT_EQ(field_of(*answer, "Location"), "/");
  EXPECT_EQ(field_of(*answer, "Set-Cookie"),
            "lockstep_9f9f5111=0123456789abcdef; Path=/; HttpOnly; SameSite=Strict");
  const auto linked = gate().turn_away(request("/",
                                               {{"host", "localhost:8080"},
                                                {"sec-fetch-site", "cross-site"},
                                                {"sec-fetch-mode", "navigate"}},
                                               "token=0123456789abcdef"));
  ASSERT_TRUE(linked);
  EXPECT_EQ(linked->status, 200);
  EXPECT_EQ(field_of(*linked, "Refresh"), "0; url=/");
}

TEST(Gate, OtherNamesOfThisMachineAreRefused) {
  const std::string cookie = "lockstep_9f9f5111=0123456789abcdef";
  const auto as = [&](const std::string& bound, const std::string& host) {
    return status_of(gate(bound), request("/", {{"host", host}, {"cookie", cookie}}));
  };
  for (const char* own : {"localhost", "LOCALHOST:1", "127.0.0.1:99", "127.9.9.9", "[::1]:5"})
    EXPECT_EQ(as("127.0.0.1", own), 0) << own;
  for (const char* foreign :
       {"evil.example", "localhost.evil.example", "127.evil.example", "", "10.0.0.1", "[::1",
        "localhost, evil.example", "localhost:80, evil.example", "[::2]"})
    EXPECT_EQ(as("127.0.0.1", foreign), 403) << foreign;
  EXPECT_EQ(as("10.0.0.1", "10.0.0.1:80"), 0);
  EXPECT_EQ(as("10.0.0.1", "10.0.0.2:80"), 403);
  EXPECT_EQ(as("", "10.0.0.2:80"), 0);
  EXPECT_EQ(as("0.0.0.0", "NODE-7:80"), 0);
  EXPECT_EQ(as("0.0.0.0", "evil.example"), 403);
}

TEST(Gate, OtherSitesAreRefused) {
  const auto with = [](const Fields& more) {
    Fields fields = {{"host", "localhost:80"}, {"cookie", "lockstep_9f9f5111=0123456789abcdef"}};
    fields.insert(fields.end(), more.begin(), more.end());
    return status_of(gate(), request("/state", fields));
  };
  EXPECT_EQ(with({{"origin", "http://localhost:80"}}), 0);
  EXPECT_EQ(with({{"origin", "http://localhost:81"}}), 403);
  EXPECT_EQ(with({{"origin", "https://localhost:80"}}), 403);
  EXPECT_EQ(with({{"origin", "null"}}), 403);
  EXPECT_EQ(with({{"origin", "http://localhost:80"}, {"origin", "http://evil.example"}}), 403);
  EXPECT_EQ(with({{"sec-fetch-site", "same-origin"}}), 0);
  EXPECT_EQ(with({{"sec-fetch-site", "same-site"}, {"sec-fetch-mode", "no-cors"}}), 403);
  EXPECT_EQ(with({{"sec-fetch-site", "cross-site"}, {"sec-fetch-mode", "cors"}}), 403);
  EXPECT_EQ(with({{"sec-fetch-site", "same-site"}, {"sec-fetch-mode", "navigate"}}), 0);
}

TEST(Gate, WithoutATokenTheHeadersStillCount) {
  const Gate open = gate("127.0.0.1", "");
  EXPECT_EQ(status_of(open, request("/metrics", {{"host", "localhost:9"}})), 0);
  EXPECT_EQ(status_of(open, request("/metrics", {{"host", "evil.example"}})), 403);
  EXPECT_EQ(status_of(open, request("/metrics", {})), 403);
}

}  // namespace
}  // namespace lockstep::page
