#include "codec/url.h"

#include <gtest/gtest.h>

#include <vector>

namespace lockstep::codec {
namespace {

TEST(UrlCoding, LeavesAloneWhatTheRfcDoes) {
  EXPECT_EQ(percent_code("Az09-._~"), "Az09-._~");
  EXPECT_EQ(percent_code(" +/=&*'()!:@\xe1\x88\xb4"),
            "%20%2B%2F%3D%26%2A%27%28%29%21%3A%40%E1%88%B4");
  EXPECT_EQ(percent_code("/dev/sda1", "/"), "/dev/sda1");
  EXPECT_EQ(percent_decode("%2Fa%20+%e1%88%B4"), "/a +\xe1\x88\xb4");
  for (const char* broken : {"%", "%4", "a%4x", "%%41"})
    EXPECT_FALSE(percent_decode(broken)) << broken;
}

TEST(UrlCoding, Forms) {
  const std::vector<std::pair<std::string, std::string>> members = {
      {"Action", "RunInstances"}, {"Filter.1.Name", "tag:lockstep:intent"}, {"Empty", ""}};
  EXPECT_EQ(form_text(members), "Action=RunInstances&Filter.1.Name=tag%3Alockstep%3Aintent&Empty=");
}

TEST(UrlParts, AreTakenApart) {
  const auto url =
      parse_url("https://User%40corp:p%3Aw@Proxy.Example:3128/a/b?c=d#e", "it").value();
  EXPECT_TRUE(url.tls);
  EXPECT_EQ(url.user, "User@corp");
  EXPECT_EQ(url.password, "p:w");
  EXPECT_EQ(url.host, "proxy.example");
  EXPECT_EQ(url.port, 3128);
  EXPECT_EQ(url.target, "/a/b?c=d");
  EXPECT_EQ(parse_url("https://a", "it").value().port, 443);
  EXPECT_EQ(parse_url("HTTP://a:", "it").value().port, 80);
  EXPECT_EQ(parse_url("http://a?b", "it").value().target, "/?b");
  const auto six = parse_url("http://[fe80::1%25eth0]:81", "it").value();
  EXPECT_EQ(six.host, "fe80::1%25eth0");
  EXPECT_EQ(six.port, 81);
}

TEST(UrlParts, BrokenOnesAreNamedButNotRepeated) {
  const std::pair<std::string, const char*> broken[] = {
      {"", "must be an http:// or https:// URL"},
      {"http", "must be an http:// or https:// URL"},
      {"socks5://u:secret@h", "must be an http:// or https:// URL"},
      {"http:// secret", "has white space or control characters in it"},
      {"http://h\r\nsecret", "has white space or control characters in it"},
      {"http://u:secret%@h", "has a broken user or password in it"},
      {"http://u:secret@", "names no host"},
      {"http://[::1", "names no host"},
      {"http://a\"secret/", "names no host"},
      {"http://h:secret", "has a port outside 1 to 65535"},
      {"http://h:0", "has a port outside 1 to 65535"},
      {"http://h:65536", "has a port outside 1 to 65535"},
      {"http://" + std::string(9000, 'h'), "is longer than 8 KiB"}};
  for (const auto& [text, why] : broken) {
    const auto url = parse_url(text, "HTTPS_PROXY");
    ASSERT_FALSE(url) << text;
    EXPECT_EQ(url.error().message, std::string("HTTPS_PROXY ") + why);
  }
}

TEST(UrlParts, TheSchemesOwnPortStaysOutOfTheHostHeader) {
  EXPECT_EQ(host_text("a", 443, true), "a");
  EXPECT_EQ(host_text("a", 80, true), "a:80");
  EXPECT_EQ(host_text("a", 80, false), "a");
  EXPECT_EQ(host_text("::1", 443, false), "[::1]:443");
}

}  // namespace
}  // namespace lockstep::codec
