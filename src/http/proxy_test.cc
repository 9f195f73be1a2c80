#include "http/proxy.h"

#include <gtest/gtest.h>

#include <map>

namespace lockstep::http {
namespace {

using Environment = std::map<std::string, std::string, std::less<>>;

EnvLookup in(const Environment& names) {
  return [&names](std::string_view name) -> std::optional<std::string> {
    const auto found = names.find(name);
    return found == names.end() ? std::nullopt : std::optional(found->second);
  };
}

// Returns "HOST:PORT (VARIABLE)", "" for no proxy, or the error.
std::string chosen(const Environment& names, const std::string& host = "ec2.aws.example",
                   bool tls = true) {
  const auto proxy = choose_proxy(in(names), host, tls ? 443 : 80, tls);
  if (!proxy) return proxy.error().message;
  return *proxy ? (*proxy)->text() : "";
}

TEST(Proxy, ByCurlsNames) {
  EXPECT_EQ(chosen({}), "");
  EXPECT_EQ(chosen({{"HTTPS_PROXY", "http://p:3128"}}), "the proxy http://p:3128 (HTTPS_PROXY)");
  EXPECT_EQ(chosen({{"HTTPS_PROXY", "http://p:3128"}, {"https_proxy", "q:1"}}),
            "the proxy http://q:1 (https_proxy)");
  EXPECT_EQ(chosen({{"HTTPS_PROXY", "http://p"}, {"https_proxy", ""}}), "");
  EXPECT_EQ(chosen({{"HTTPS_PROXY", " P.Example "}}),
            "the proxy http://p.example:80 (HTTPS_PROXY)");
  EXPECT_EQ(chosen({{"HTTP_PROXY", "http://p:1"}}), "");
  EXPECT_EQ(chosen({{"HTTP_PROXY", "http://p:1"}}, "a.example", false),
            "the proxy http://p:1 (HTTP_PROXY)");
  EXPECT_EQ(chosen({{"HTTP_PROXY", "http://p:1"}, {"REQUEST_METHOD", "GET"}}, "a.example", false),
            "");
  EXPECT_EQ(chosen({{"ALL_PROXY", "http://p:1"}}), "the proxy http://p:1 (ALL_PROXY)");
}

TEST(Proxy, NeverForThisMachine) {
  for (const char* host : {"localhost", "127.0.0.1", "127.8.8.8", "::1", "LocalHost"})
    EXPECT_EQ(chosen({{"HTTPS_PROXY", "http://p:1"}}, host), "") << host;
  EXPECT_NE(chosen({{"HTTPS_PROXY", "http://p:1"}}, "128.0.0.1"), "");
}

TEST(Proxy, UserAndPassword) {
  const Environment names = {{"HTTPS_PROXY", "http://us%40er:p%3Aw@p:3128"}};
  const auto proxy = choose_proxy(in(names), "a.example", 443, true);
  ASSERT_TRUE(proxy && *proxy);
  EXPECT_EQ((*proxy)->authorization, "Basic dXNAZXI6cDp3");
  EXPECT_EQ((*proxy)->text(), "the proxy http://p:3128 (HTTPS_PROXY)");
}

TEST(Proxy, WrongOnesAreNamedWithoutTheirPassword) {
  EXPECT_EQ(chosen({{"HTTPS_PROXY", "socks5://u:secret@p:1"}}),
            "HTTPS_PROXY names a proxy of a kind that isn't supported (https or SOCKS)");
  EXPECT_EQ(chosen({{"https_proxy", "https://u:secret@p:1"}}),
            "https_proxy names a proxy of a kind that isn't supported (https or SOCKS)");
  EXPECT_EQ(chosen({{"HTTPS_PROXY", "http://u:secret@p:secret"}}),
            "HTTPS_PROXY has a port outside 1 to 65535");
}

TEST(Proxy, ExceptForWhatNoProxyNames) {
  const struct {
    const char* no_proxy;
    const char* host;
    bool direct;
  } cases[] = {
      {"*", "a.example", true},
      {"a.example", "a.example", true},
      {"A.Example.", "a.EXAMPLE", true},
      {"a.example", "b.a.example.", true},
      {"a.example", "ba.example", false},
      {".a.example", "a.example", true},
      {"*.a.example", "b.a.example", true},
      {"x, a.example", "a.example", true},
      {"x a.example\ty", "a.example", true},
      {"a.example:443", "a.example", true},
      {"a.example:444", "a.example", false},
      {"a.example:x", "a.example", false},
      {"", "a.example", false},
      {",.,", "a.example", false},
      {"example", "a.example", true},
      {"10.0.0.1", "10.0.0.1", true},
      {"10.0.0.1", "10.0.0.10", false},
      {"0.0.1", "10.0.0.1", false},
      {"10.0.0.0/8", "10.9.9.9", true},
      {"10.0.0.0/8", "11.0.0.1", false},
      {"192.168.128.0/17", "192.168.127.1", false},
      {"0.0.0.0/0", "192.168.127.1", true},
      {"10.0.0.0/33", "10.0.0.0", false},
      {"10.0.0.0/8", "a.example", false},
      {"fd00::/8", "fd12::1", true},
      {"fd00::1", "fd00:0::1", true},
      {"[fd00::1]:443", "fd00::1", true},
      {"[fd00::1]:80", "fd00::1", false},
      {"[fd00::1", "fd00::1", false},
  };
  for (const auto& each : cases) {
    EXPECT_EQ(is_in_no_proxy(each.no_proxy, each.host, 443), each.direct)
        << each.no_proxy << " for " << each.host;
  }
  EXPECT_EQ(chosen({{"HTTPS_PROXY", "http://p"}, {"NO_PROXY", "aws.example"}}), "");
  EXPECT_NE(chosen({{"HTTPS_PROXY", "http://p"}, {"NO_PROXY", "aws.example"}}, "aws.org"), "");
}

}  // namespace
}  // namespace lockstep::http
