#include "cloud/user_data.h"

#include <gtest/gtest.h>

#include <string>

namespace lockstep::cloud {
namespace {

constexpr MachineEnding kContainer{
    .word = "pod", .command = "podctl remove \"$POD_ID\"", .variables = "POD_"};

FirstBoot some_boot() {
  return {.host_key = key_pair_text(std::string(32, 's'), std::string(32, 'p'), 7, "lockstep-host"),
          .user_public_key = "ssh-ed25519 AAAAuser lockstep-user"};
}

bool says(const std::string& text, std::string_view words) {
  return text.find(words) != std::string::npos;
}

TEST(UserData, InjectsTheHostKeyLetsTheUserInAndArmsTheTimer) {
  const FirstBoot boot = some_boot();
  const auto text = cloud_config(boot);
  ASSERT_TRUE(text) << text.error().message;
  EXPECT_TRUE(text->starts_with("#cloud-config\n"));
  EXPECT_LT(text->size(), 4096U);
  EXPECT_TRUE(says(*text, "  ed25519_private: |\n    -----BEGIN OPENSSH PRIVATE KEY-----\n    "));
  EXPECT_TRUE(says(*text, "\n    -----END OPENSSH PRIVATE KEY-----\n  ed25519_public: \"ssh-ed"));
  EXPECT_TRUE(says(*text, "  - \"ssh-ed25519 AAAAuser lockstep-user\"\n"));
  EXPECT_TRUE(says(*text, "--unit=lockstep-guard --on-active=1200 "));
  EXPECT_TRUE(says(*text, "PasswordAuthentication no"));
  EXPECT_FALSE(says(*text, "runpod"));
}

// At first boot systemd starts ordinary timers only after cloud-init has finished.
TEST(UserData, TheBootTimerWaitsForNothing) {
  const std::string script = arm_script("t", 60, kPoweroff);
  for (const char* word : {"--no-block", "--timer-property=DefaultDependencies=no",
                           "-p DefaultDependencies=no", "AccuracySec=1s"})
    EXPECT_TRUE(says(script, word)) << word;
}

TEST(UserData, ASleepingShellCountsTheSeconds) {
  EXPECT_TRUE(says(arm_script("t", 60, kPoweroff), "n=30; while"));
  EXPECT_TRUE(says(arm_script("t", 61, kPoweroff), "n=31; while"));
  EXPECT_TRUE(says(arm_script("t", 1, kPoweroff), "n=1; while [ $n -gt 0 ]; do sleep 1;"));
  EXPECT_TRUE(says(arm_script("t", -5, kPoweroff), "--on-active=1 "));
}

TEST(UserData, AContainerEndsItselfByItsProvidersProgram) {
  const auto text = container_start(some_boot(), kContainer);
  ASSERT_TRUE(text) << text.error().message;
  EXPECT_LT(text->size(), 4096U);
  EXPECT_TRUE(says(*text, "podctl remove \"$POD_ID\""));
  EXPECT_FALSE(says(*text, "systemd-run"));
  EXPECT_TRUE(says(*text, "exec /usr/sbin/sshd -D"));
  // The timer comes before anything that could fail or take time.
  EXPECT_LT(text->find("setsid"), text->find("authorized_keys"));
}

TEST(UserData, TakesNothingButKeys) {
  FirstBoot boot = some_boot();
  boot.user_public_key += "\nruncmd: [reboot]";
  EXPECT_FALSE(cloud_config(boot));
  EXPECT_FALSE(container_start(boot, kContainer));
  boot = some_boot();
  boot.host_key.private_text = "";
  EXPECT_FALSE(cloud_config(boot));
  boot = some_boot();
  boot.user_public_key = "ssh-ed25519 " + std::string(5000, 'A');
  EXPECT_FALSE(cloud_config(boot));
}

TEST(UserData, QuotesWhatAShellOrYamlWouldRead) {
  FirstBoot boot = some_boot();
  boot.user_public_key = "ssh-ed25519 AAAA it's \"$HOME\"";
  EXPECT_TRUE(says(*cloud_config(boot), R"(  - "ssh-ed25519 AAAA it's \"$HOME\"")"));
  EXPECT_TRUE(
      says(*container_start(boot, kContainer), R"(echo 'ssh-ed25519 AAAA it'\''s "$HOME"' >>)"));
}

}  // namespace
}  // namespace lockstep::cloud
