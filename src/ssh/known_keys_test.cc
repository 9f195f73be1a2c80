#include "ssh/known_keys.h"

#include "base/error_testing.h"

#include <gtest/gtest.h>

namespace lockstep::ssh {
namespace {

using Words = std::vector<std::string>;

// The hashes are the output of ssh-keygen -H.
constexpr std::string_view kFile =
    "# a comment\n"
    "gpu2,10.0.0.2 ssh-ed25519 AAAA1 me@laptop\n"
    "  \n"
    "[gpu2]:2222\tssh-ed25519  AAAA2\n"
    "*.corp,!bad.corp ssh-rsa AAAA3\n"
    "@cert-authority * ssh-rsa AAAA4\n"
    "HASHED ssh-ed25519 AAAA5\n"
    "gpu2 ecdsa-sha2-nistp256 AAAA6\n"
    "cut ssh-rsa\n";

TEST(KnownKeys, AreFoundAsSshFindsThem) {
  std::string file(kFile);
  file.replace(file.find("HASHED"), 6,
               "|1|ibsxaahLhvFNvVjzvjN7hDuMBf4=|fizVHdmKF9CNlNLuVgpY+I/SPHs=");
  EXPECT_EQ(known_keys(file, "gpu2"), (Words{"ssh-ed25519 AAAA1", "ecdsa-sha2-nistp256 AAAA6"}));
  EXPECT_EQ(known_keys(file, "10.0.0.2"), Words{"ssh-ed25519 AAAA1"});
  EXPECT_EQ(known_keys(file, "[gpu2]:2222"), Words{"ssh-ed25519 AAAA2"});
  EXPECT_EQ(known_keys(file, "x.corp"), Words{"ssh-rsa AAAA3"});
  EXPECT_EQ(known_keys(file, "hidden.example"), Words{"ssh-ed25519 AAAA5"});
  for (const char* name : {"bad.corp", "gpu", "gpu22", "corp", "cut", "", "[gpu2]:22"})
    EXPECT_EQ(known_keys(file, name), Words{}) << name;
}

TEST(Trust, IsStrictOnceAnyFileKnowsTheHost) {
  EXPECT_EQ(trust_in({{"/a", {}}, {"/b", {}}}, "h").value(), Trust{});
  EXPECT_EQ(
      trust_in({{"/a", {}}, {"/b", {"ssh-rsa A"}}, {"/c", {"ssh-rsa A", "ssh-ed25519 B"}}}, "h")
          .value(),
      (Trust{true, {"/b", "/c"}}));
}

TEST(Trust, ReadsFilesWithMarkedLines) {
  EXPECT_TRUE(has_marked_line("gpu2 ssh-rsa A\n@revoked gpu* ssh-ed25519 K\n", "gpu2"));
  EXPECT_TRUE(has_marked_line("@cert-authority\t*.corp ssh-rsa CA comment\n", "x.corp"));
  EXPECT_FALSE(has_marked_line("@revoked gpu3 ssh-ed25519 K\n@revoked gpu2 cut\n", "gpu2"));
  EXPECT_EQ(trust_in({{"/revokes", {}, true}, {"/b", {"ssh-rsa A"}}, {"/c", {}}}, "h").value(),
            (Trust{true, {"/revokes", "/b"}}));
  EXPECT_EQ(trust_in({{"/revokes", {}, true}}, "h").value(), (Trust{false, {"/revokes"}}));
}

TEST(Trust, FilesThatDisagreeRefuseEveryKey) {
  const auto trust = trust_in({{"/pins", {"ssh-ed25519 OLD"}}, {"/own", {"ssh-ed25519 NEW"}}}, "h");
  ASSERT_FALSE(trust);
  EXPECT_EQ(code_of(trust), Errc::denied);
  EXPECT_NE(trust.error().message.find("/pins and /own"), std::string::npos);
  // Keys of different types do not contradict each other.
  EXPECT_TRUE(trust_in({{"/a", {"ssh-ed25519 A"}}, {"/b", {"ssh-rsa B"}}}, "h"));
}

TEST(Trust, LeavesAFileOutIfAnotherRefusesOneOfItsKeys) {
  const KnownKeys two{"/two", {"ssh-rsa A", "ssh-rsa B"}};
  EXPECT_EQ(trust_in({two, {"/one", {"ssh-rsa B"}}}, "h").value(), (Trust{true, {"/one"}}));
  EXPECT_EQ(trust_in({{"/one", {"ssh-rsa B", "ssh-ed25519 C"}}, two}, "h").value(),
            (Trust{true, {"/one"}}));
  EXPECT_FALSE(trust_in({two, {"/other", {"ssh-rsa B", "ssh-rsa C"}}}, "h"));
  // ssh must read a file with revoked keys, but would then accept every key in the file.
  EXPECT_FALSE(trust_in({{"/two", two.keys, true}, {"/one", {"ssh-rsa B"}}}, "h"));
}

TEST(LookUp, IsWhatSshSays) {
  const LookUp usual = parse_look_up(
      "user me\nhostname Gpu2.Corp\nport 22\nglobalknownhostsfile /etc/ssh/known_hosts\n"
      "userknownhostsfile ~/.ssh/known_hosts /x/y\n"
      "identityfile ~/.ssh/id_rsa\nidentityfile /k\n",
      "/home/me");
  EXPECT_EQ(usual.name, "gpu2.corp");
  EXPECT_EQ(usual.files, (Words{"/etc/ssh/known_hosts", "/home/me/.ssh/known_hosts", "/x/y"}));
  EXPECT_EQ(usual.identities, (Words{"/home/me/.ssh/id_rsa", "/k"}));
  EXPECT_EQ(parse_look_up("hostname h\nport 2222\n", "/").name, "[h]:2222");
  EXPECT_EQ(parse_look_up("hostname h\nport 2222\nhostkeyalias a\n", "/").name, "a");
  EXPECT_EQ(parse_look_up("", "/").name, "");
}

}  // namespace
}  // namespace lockstep::ssh
