#include "ssh/ssh_command.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace lockstep::ssh {
namespace {

bool has(const std::vector<std::string>& argv, const std::string& word) {
  return std::find(argv.begin(), argv.end(), word) != argv.end();
}

TEST(SshCommand, TheMasterChecksKeysAndGoesToTheBackground) {
  const auto argv = master_command(parse_target("u@h:2222").value(),
                                   {.socket = "/run/a%b", .pins = "/home/my x/pins"});
  EXPECT_EQ(argv.front(), "ssh");
  EXPECT_TRUE(has(argv, "/run/a%%b"));
  EXPECT_TRUE(has(argv, "StrictHostKeyChecking=accept-new"));
  EXPECT_TRUE(has(argv,
                  "UserKnownHostsFile=\"/home/my x/pins\" ~/.ssh/known_hosts "
                  "~/.ssh/known_hosts2"));
  EXPECT_TRUE(has(argv, "BatchMode=yes"));
  EXPECT_TRUE(has(argv, "-f"));
  const std::vector<std::string> end(argv.end() - 6, argv.end());
  EXPECT_EQ(end, (std::vector<std::string>{"-p", "2222", "-l", "u", "--", "h"}));
}

TEST(SshCommand, WhatWasNotGivenIsLeftToTheUsersFiles) {
  const auto argv = master_command({.host = "alias"}, {.socket = "/s", .may_ask = true});
  for (const char* word : {"-p", "-l", "-i", "-J", "BatchMode=yes"})
    EXPECT_FALSE(has(argv, word)) << word;
  const auto full =
      master_command({.host = "h", .key_path = "/k", .jump = "j1,j2"}, {.socket = "/s"});
  EXPECT_TRUE(has(full, "/k"));
  EXPECT_FALSE(has(full, "-J"));
}

TEST(SshCommand, APersonsSessionTrustsTheSameKeysAndKeepsItsOwnOptions) {
  const auto argv = login_command({.host = "h", .jump = "j"}, {.socket = "/s%d", .pins = "/p"},
                                  {"-L", "8080:localhost:80"});
  EXPECT_TRUE(has(argv, "/s%%d"));
  EXPECT_TRUE(has(argv, "StrictHostKeyChecking=accept-new"));
  EXPECT_TRUE(has(argv, "ControlMaster=no"));
  for (const char* word : {"ClearAllForwardings=yes", "RequestTTY=no", "BatchMode=yes"})
    EXPECT_FALSE(has(argv, word)) << word;
  EXPECT_FALSE(has(argv, "--"));
  const std::vector<std::string> end = {"h", "-L", "8080:localhost:80"};
  EXPECT_EQ(std::vector<std::string>(argv.end() - 3, argv.end()), end);
}

TEST(SshCommand, EveryJumpHostIsHeldToTheSameRules) {
  const auto argv = master_command({.host = "h", .jump = "me@j1,j2:2222"}, {.socket = "/s"});
  std::string proxy;
  for (const std::string& word : argv)
    if (word.starts_with("ProxyCommand=")) proxy = word;
  EXPECT_NE(proxy.find("-W '[%h]:%p'"), std::string::npos) << proxy;
  EXPECT_NE(proxy.find("-p 2222 -- j2"), std::string::npos) << proxy;
  // The first hop's command is inside, with its percent signs escaped once more.
  EXPECT_NE(proxy.find("[%%h]:%%p"), std::string::npos) << proxy;
  EXPECT_NE(proxy.find("-l me -- j1"), std::string::npos) << proxy;
  const std::string rule = "StrictHostKeyChecking=accept-new";
  EXPECT_NE(proxy.find(rule), proxy.rfind(rule));
}

TEST(SshCommand, TheKeyThatWasGivenIsShownToJumpHostsToo) {
  const auto argv =
      master_command({.host = "h", .key_path = "/my key", .jump = "j"}, {.socket = "/s"});
  EXPECT_TRUE(has(argv, "/my key"));
  std::string proxy;
  for (const std::string& word : argv)
    if (word.starts_with("ProxyCommand=")) proxy = word;
  EXPECT_NE(proxy.find("-i '/my key'"), std::string::npos) << proxy;
}

TEST(SshCommand, FilesWithKeysAndMarkedLinesAreRead) {
  const Target target{.host = "h"};
  MasterSettings settings{.socket = "/s", .pins = "/pins"};
  settings.trusts[target_key(target)] = {.strict = false, .files = {"/revokes"}};
  const auto first = master_command(target, settings);
  EXPECT_TRUE(has(first, "StrictHostKeyChecking=accept-new"));
  EXPECT_TRUE(has(first,
                  "UserKnownHostsFile=\"/pins\" ~/.ssh/known_hosts ~/.ssh/known_hosts2 "
                  "\"/revokes\""));
  settings.trusts[target_key(target)] = {.strict = true, .files = {"/pins", "/revokes"}};
  const auto known = master_command(target, settings);
  EXPECT_TRUE(has(known, "StrictHostKeyChecking=yes"));
  EXPECT_TRUE(has(known, "UserKnownHostsFile=\"/pins\" \"/revokes\""));
  EXPECT_TRUE(has(known, "GlobalKnownHostsFile=/dev/null"));
  EXPECT_FALSE(has(first, "GlobalKnownHostsFile=/dev/null"));
}

TEST(SshCommand, APinnedHostIsKnownByItsPinAlone) {
  const Target target{.host = "h", .jump = "j", .host_keys = HostKeys::pinned};
  const MasterSettings settings{.socket = "/s", .pins = "/p"};
  const auto probe = probe_command(target, settings);
  for (const auto& argv :
       {master_command(target, settings), probe, login_command(target, settings, {})}) {
    EXPECT_TRUE(has(argv, "StrictHostKeyChecking=yes"));
    EXPECT_TRUE(has(argv, "HostKeyAlgorithms=ssh-ed25519"));
    EXPECT_TRUE(has(argv, "UserKnownHostsFile=\"/p\""));
    EXPECT_TRUE(has(argv, "GlobalKnownHostsFile=/dev/null"));
    EXPECT_TRUE(has(argv, "UpdateHostKeys=no"));
    EXPECT_FALSE(has(argv, "StrictHostKeyChecking=accept-new"));
  }
  // The jump host of the user's own configuration is left alone.
  for (const std::string& word : probe)
    if (word.starts_with("ProxyCommand=")) {
      EXPECT_NE(word.find("accept-new"), std::string::npos) << word;
    }
  const auto lost = master_command(target, {.socket = "/s"});
  EXPECT_TRUE(has(lost, "UserKnownHostsFile=/dev/null"));
}

}  // namespace
}  // namespace lockstep::ssh
