#include "ssh/ssh_environment.h"

#include <gtest/gtest.h>

namespace lockstep::ssh {
namespace {

using Words = std::vector<std::string>;

TEST(SshEnvironment, HoldsWhatSshNeedsAndNoSecrets) {
  const Words needed = {"HOME=/root",       "PATH=/bin",          "LC_ALL=C",
                        "SSH_AUTH_SOCK=/s", "XDG_RUNTIME_DIR=/r", "KRB5CCNAME=/k",
                        "SSH_ASKPASS=/a",   "AWS_PROFILE=work"};
  Words own = needed;
  for (const char* secret :
       {"AWS_SECRET_ACCESS_KEY=x", "AWS_ACCESS_KEY_ID=x", "AWS_SESSION_TOKEN=x", "RUNPOD_API_KEY=x",
        "WANDB_API_KEY=x", "CLOUDSDK_AUTH_ACCESS_TOKEN=x", "HF_TOKEN=x", "LD_PRELOAD=x", "HOMEX=x"})
    own.emplace_back(secret);
  EXPECT_EQ(ssh_environment(own), needed);
}

TEST(SshEnvironment, TheUserMayNameMore) {
  EXPECT_EQ(ssh_environment({"A=1", "B=2", "C=3", "LOCKSTEP_SSH_ENV=A,C"}), (Words{"A=1", "C=3"}));
}

}  // namespace
}  // namespace lockstep::ssh
