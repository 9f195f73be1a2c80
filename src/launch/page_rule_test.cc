#include "base/error_testing.h"
#include "launch/launch_testing.h"

#include <gtest/gtest.h>

#include <utility>

namespace lockstep::launch {
namespace {

Result<LaunchConfig> paged(const std::string& page, const std::string& token = {}) {
  RawOptions raw;
  raw.script = "T";
  raw.status_page = page;
  if (!token.empty()) raw.page_token = token;
  return make_launch_config(raw, Machine().facts());
}

TEST(PageRule, ReadsAPlace) {
  struct Case {
    const char* text;
    const char* host;
    int port;
  };
  for (const Case& c : {Case{"localhost:0", "localhost", 0}, Case{"8000", "localhost", 8000},
                        Case{"10.0.0.1:8000", "10.0.0.1", 8000}, Case{":8000", "", 8000},
                        Case{"[::1]:80", "::1", 80}, Case{"node-7:0", "node-7", 0}}) {
    const auto config = paged(c.text);
    ASSERT_TRUE(config) << c.text << ": " << config.error().message;
    EXPECT_EQ(config->page.status_page->host, c.host) << c.text;
    EXPECT_EQ(config->page.status_page->port, c.port) << c.text;
    EXPECT_FALSE(config->page.metrics);
  }
  for (const char* bad :
       {"", " ", "70000", "a:b", "a:65536", "a b:1", ":x", "/tmp/x", "80O0", "[::1]", "::1"}) {
    const auto config = paged(bad);
    ASSERT_FALSE(config) << bad;
    EXPECT_TRUE(config.error().message.starts_with("--status-page must be a port or ADDR:PORT"))
        << config.error().message;
  }
}

TEST(PageRule, TwoServersNeedTwoPorts) {
  const auto both = [](const char* page, const char* metrics) {
    RawOptions raw;
    raw.script = "T";
    raw.status_page = page;
    raw.metrics = metrics;
    return make_launch_config(raw, Machine().facts());
  };
  for (const auto& [page, metrics] :
       {std::pair{"8000", "8000"}, std::pair{"8000", "127.0.0.1:8000"}, std::pair{":8000", "8000"},
        std::pair{"10.0.0.1:8000", "0.0.0.0:8000"}, std::pair{"n1:8000", "n1:8000"}}) {
    const auto config = both(page, metrics);
    ASSERT_FALSE(config) << page << " " << metrics;
    EXPECT_EQ(config.error().message,
              "--status-page and --metrics must have different ports (got 8000 twice)");
    EXPECT_EQ(code_of(config), Errc::invalid_input);
  }
  for (const auto& [page, metrics] :
       {std::pair{"8000", "8001"}, std::pair{"0", "0"}, std::pair{"10.0.0.1:8000", "8000"}})
    EXPECT_TRUE(both(page, metrics)) << page << " " << metrics;
}

TEST(PageRule, TheTokenFitsIntoAnAddress) {
  EXPECT_EQ(paged("8000", "0123456789abcdef")->page.token, "0123456789abcdef");
  for (const char* bad :
       {"short", "0123456789abcde&", "0123456789abcdef;x=1", "0123456789abcdef\n"}) {
    const auto config = paged("8000", bad);
    ASSERT_FALSE(config) << bad;
    EXPECT_EQ(config.error().message.find(bad), std::string::npos) << "the secret is printed";
  }
}

}  // namespace
}  // namespace lockstep::launch
