#include "cloud/aws/profile.h"

#include <gtest/gtest.h>

namespace lockstep::cloud::aws {
namespace {

using Words = std::vector<std::string>;

TEST(AwsProfile, KeysOfTheCredentialsFileWin) {
  const auto credentials = codec::parse_ini(
      "[default]\naws_access_key_id = A1\naws_secret_access_key = S1\n[work]\n"
      "aws_access_key_id=A2\naws_secret_access_key=S2\naws_session_token=T2\n",
      "c");
  const auto config = codec::parse_ini(
      "[default]\nregion = eu-west-1\naws_access_key_id = B1\naws_secret_access_key = R1\n"
      "[profile work]\nregion = us-west-2\n[profile role]\nrole_arn = arn:aws:iam::1:role/r\n"
      "source_profile = work\nexternal_id = x\n[profile run]\ncredential_process = /bin/k \"a "
      "b\"\n",
      "f");
  ASSERT_TRUE(credentials && config);
  const Profile first = profile_of(*credentials, *config, "default");
  EXPECT_EQ(first.key.id, "A1");
  EXPECT_EQ(first.key.secret, "S1");
  EXPECT_EQ(first.region, "eu-west-1");
  const Profile work = profile_of(*credentials, *config, "work");
  EXPECT_EQ(work.key.session_token, "T2");
  EXPECT_EQ(work.region, "us-west-2");
  const Profile role = profile_of(*credentials, *config, "role");
  EXPECT_EQ(role.role, "arn:aws:iam::1:role/r");
  EXPECT_EQ(role.role_source, "work");
  EXPECT_EQ(role.external_id, "x");
  EXPECT_TRUE(role.key.id.empty());
  EXPECT_EQ(profile_of(*credentials, *config, "run").process, "/bin/k \"a b\"");
  EXPECT_FALSE(profile_of(*credentials, *config, "none").there);
}

TEST(AwsProfile, HalfAPairIsNone) {
  const auto credentials = codec::parse_ini("[a]\naws_access_key_id = A\n", "c");
  const auto config = codec::parse_ini("[profile a]\naws_secret_access_key = S\n", "f");
  const Profile profile = profile_of(*credentials, *config, "a");
  EXPECT_TRUE(profile.there);
  EXPECT_TRUE(profile.key.id.empty());
}

TEST(AwsProfile, ACommandIsReadWithoutAShell) {
  EXPECT_EQ(*command_words("/opt/bin/keys --role  'a b' \"c \\\" d\" e\\ f"),
            (Words{"/opt/bin/keys", "--role", "a b", "c \" d", "e f"}));
  EXPECT_EQ(*command_words("x '' $(rm -rf /) ; `y`"),
            (Words{"x", "", "$(rm", "-rf", "/)", ";", "`y`"}));
  for (const char* wrong : {"", "  ", "a 'b", "a \"b", "a\\"})
    EXPECT_FALSE(command_words(wrong)) << wrong;
}

TEST(AwsProfile, PrintedKeysAreRead) {
  const auto keys = parse_printed_keys(
      R"({"Version":1,"AccessKeyId":"A","SecretAccessKey":"S","SessionToken":"T",)"
      R"("Expiration":"2026-11-23T06:00:00+00:00"})");
  ASSERT_TRUE(keys);
  EXPECT_EQ(keys->key.session_token, "T");
  EXPECT_EQ(keys->expires_ms, 1'795'413'600'000);
  EXPECT_FALSE(parse_printed_keys("no"));
  EXPECT_FALSE(parse_printed_keys(R"({"AccessKeyId":"A"})"));
  EXPECT_FALSE(
      parse_printed_keys(R"({"AccessKeyId":"A","SecretAccessKey":"S","Expiration":"soon"})"));
}

TEST(AwsProfile, AnAssumedRoleIsRead) {
  const auto keys = parse_assumed_role(
      "<AssumeRoleResponse xmlns=\"https://sts.amazonaws.com/doc/2011-06-15/\"><AssumeRoleResult>"
      "<Credentials><AccessKeyId>A</AccessKeyId><SecretAccessKey>S</SecretAccessKey><SessionToken>T"
      "</SessionToken><Expiration>2026-11-23T06:00:00Z</Expiration></Credentials>"
      "</AssumeRoleResult></AssumeRoleResponse>");
  ASSERT_TRUE(keys);
  EXPECT_EQ(keys->key.secret, "S");
  EXPECT_EQ(keys->expires_ms, 1'795'413'600'000);
  EXPECT_FALSE(parse_assumed_role("<AssumeRoleResponse/>"));
}

TEST(KeysNote, SaysWhenTemporaryKeysEndBeforeTheMachinesMay) {
  Keys keys{.key = {.id = "i", .secret = "s", .session_token = "t"},
            .expires_ms = 1'795'417'200'000,
            .from = "AWS_ACCESS_KEY_ID",
            .read = true};
  const std::string note = keys_note(keys, 1'795'417'200'000);
  EXPECT_NE(note.find("the keys of AWS_ACCESS_KEY_ID are temporary and end 2026-11-23T"),
            std::string::npos)
      << note;
  EXPECT_NE(note.find("AWS_PROFILE"), std::string::npos) << note;
  EXPECT_EQ(keys_note(keys, 1'795'417'199'999), "");
  keys.expires_ms = 0;
  keys.from = "AWS profile work";
  EXPECT_NE(keys_note(keys, 1).find("lockstep reads the file again"), std::string::npos);
  keys.read = false;  // of a role, a program or the metadata service
  EXPECT_EQ(keys_note(keys, 1), "");
  keys.read = true;
  keys.key.session_token.clear();
  EXPECT_EQ(keys_note(keys, 1), "");
}

}  // namespace
}  // namespace lockstep::cloud::aws
