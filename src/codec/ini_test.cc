#include "codec/ini.h"

#include "base/error_testing.h"

#include <gtest/gtest.h>

namespace lockstep::codec {
namespace {

TEST(IniReader, AwsConfig) {
  const auto ini = parse_ini(
      "\xEF\xBB\xBF# mine\r\n"
      "[default]\r\n"
      "region=eu-west-1\r\n"
      "\r\n"
      "[profile  \"my  work\"] ; old\n"
      "Role_ARN = arn:aws:iam::1:role/x   # why\n"
      "s3 =\n"
      "  max_concurrent_requests = 20\n"
      "\tregion = nested\n"
      "credential_process = /opt/x --sep ' ; ' --id=\"a # b\" ; comment\n"
      "[default]\n"
      "output : json\n"
      "region = eu-west-2",
      "it");
  ASSERT_TRUE(ini) << ini.error().message;
  ASSERT_EQ(ini->sections.size(), 3U);
  const IniSection* plain = ini->section("default");
  ASSERT_NE(plain, nullptr);
  EXPECT_EQ(plain->value("region"), "eu-west-2");
  EXPECT_EQ(plain->value("output"), "json");
  EXPECT_EQ(plain->value("nothing"), "");
  const IniSection* work = ini->section("profile my work");
  ASSERT_NE(work, nullptr);
  EXPECT_EQ(work->value("role_arn"), "arn:aws:iam::1:role/x");
  EXPECT_EQ(work->value("s3"), "");
  EXPECT_EQ(work->value("region"), "");
  EXPECT_EQ(work->value("credential_process"), "/opt/x --sep ' ; ' --id=\"a # b\"");
  EXPECT_EQ(ini->section("profile"), nullptr);
}

TEST(IniReader, KeysOfOtherClouds) {
  const auto lambda = parse_ini("api_key = secret_a_1\n", "it").value();
  EXPECT_EQ(lambda.section("")->value("api_key"), "secret_a_1");
  const auto runpod = parse_ini("  apikey = \"RP#1\" # mine\n\n[x]\na='b'\n", "it").value();
  EXPECT_EQ(ini_unquoted(runpod.section("")->value("apikey")), "RP#1");
  EXPECT_EQ(ini_unquoted(runpod.section("x")->value("a")), "b");
  EXPECT_EQ(ini_unquoted("\"x'"), "\"x'");
  EXPECT_EQ(ini_unquoted("\""), "\"");
  EXPECT_TRUE(parse_ini("", "it").value().section("")->members.empty());
}

TEST(IniReader, ErrorsNameTheLineAndNoSecret) {
  const std::pair<const char*, const char*> broken[] = {
      {"[a]\nsecret", "keys: line 2 is neither [section] nor key = value"},
      {"=secret", "keys: line 1 is neither [section] nor key = value"},
      {"\n\n[secret", "keys: line 3 has a '[' without a ']'"},
      {"a = secret\x01", "keys: line 1 has control characters in it"}};
  for (const auto& [text, message] : broken) {
    const auto ini = parse_ini(text, "keys");
    ASSERT_FALSE(ini) << text;
    EXPECT_EQ(ini.error().message, message);
    EXPECT_EQ(code_of(ini), Errc::invalid_input);
  }
}

TEST(IniReader, IsBounded) {
  EXPECT_EQ(parse_ini(std::string((256 << 10) + 1, '\n'), "keys").error().message,
            "keys: larger than 256 KiB");
  EXPECT_TRUE(parse_ini("a=1\nb=2\n[c]\n", "keys", {.members = 3}));
  EXPECT_EQ(parse_ini("a=1\nb=2\n[c]\nd=1", "keys", {.members = 3}).error().message,
            "keys: line 4 is one too many");
}

}  // namespace
}  // namespace lockstep::codec
