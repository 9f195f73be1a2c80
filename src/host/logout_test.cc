#include "host/logout.h"

#include "host/fake_tree_testing.h"

namespace lockstep::host {
namespace {

class Logout : public FakeTree {
 protected:
  void SetUp() override {
    FakeTree::SetUp();
    put("/run/systemd/system/x");
  }
};

TEST_F(Logout, KillsOnlyWhereSystemdIsToldTo) {
  EXPECT_FALSE(logout_kills(root_, "me"));
  put("/etc/systemd/logind.conf", "[Login]\n#KillUserProcesses=yes\n");
  EXPECT_FALSE(logout_kills(root_, "me"));
  put("/etc/systemd/logind.conf", "[Login]\n KillUserProcesses = Yes \n");
  EXPECT_TRUE(logout_kills(root_, "me"));
  EXPECT_FALSE(logout_kills(root_, "root"));
  put("/etc/systemd/logind.conf.d/10.conf", "[Login]\nKillUserProcesses=no\n");
  EXPECT_FALSE(logout_kills(root_, "me"));
}

TEST_F(Logout, DropInsCountByNameAndEtcHidesOthers) {
  put("/usr/lib/systemd/logind.conf.d/10-kill.conf", "KillUserProcesses=1\n");
  EXPECT_TRUE(logout_kills(root_, "me"));
  put("/etc/systemd/logind.conf.d/10-kill.conf", "");
  EXPECT_FALSE(logout_kills(root_, "me"));
  put("/run/systemd/logind.conf.d/20.conf", "KillUserProcesses=true\n");
  EXPECT_TRUE(logout_kills(root_, "me"));
}

TEST_F(Logout, SomeUsersAreLeftAlone) {
  put("/etc/systemd/logind.conf", "KillUserProcesses=yes\nKillExcludeUsers=you me\n");
  EXPECT_FALSE(logout_kills(root_, "me"));
  EXPECT_TRUE(logout_kills(root_, "other"));
  put("/etc/systemd/logind.conf", "KillUserProcesses=yes\nKillOnlyUsers=guest\n");
  EXPECT_FALSE(logout_kills(root_, "me"));
  EXPECT_TRUE(logout_kills(root_, "guest"));
}

class NoSystemd : public FakeTree {};

TEST_F(NoSystemd, KillsNobody) {
  put("/etc/systemd/logind.conf", "KillUserProcesses=yes\n");
  EXPECT_FALSE(logout_kills(root_, "me"));
}

}  // namespace
}  // namespace lockstep::host
