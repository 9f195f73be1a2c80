#include "project/tree_lock.h"

#include "base/error_testing.h"

#include <gtest/gtest.h>

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include <filesystem>

namespace lockstep::project {
namespace {

class TreeLockTest : public ::testing::Test {
 protected:
  TreeLockTest() {
    folder_ = ::testing::TempDir() + "/project_tree_lock." + std::to_string(getpid());
    std::filesystem::remove_all(folder_);
    setenv("XDG_STATE_HOME", folder_.c_str(), 1);
  }
  ~TreeLockTest() override {
    unsetenv("XDG_STATE_HOME");
    std::filesystem::remove_all(folder_);
  }

  std::string folder_;
  const std::vector<hosts::HostPlace> hosts_ = {{.name = "a", .target = {.host = "10.0.0.1"}},
                                                {.name = "b", .target = {.host = "10.0.0.2"}}};
};

TEST_F(TreeLockTest, AFolderIsHeldWhileFilesComeBack) {
  EXPECT_FALSE(TreeLocks::is_brought_back("/code"));
  {
    TreeLocks locks;
    ASSERT_TRUE(locks.take_back("/code", {}));
    EXPECT_TRUE(TreeLocks::is_brought_back("/code"));
    EXPECT_FALSE(TreeLocks::is_brought_back("/other"));
  }
  EXPECT_FALSE(TreeLocks::is_brought_back("/code"));
}

TEST_F(TreeLockTest, ASignalEndsTheWaitAndTheHolderIsNamed) {
  TreeLocks first;
  ASSERT_TRUE(first.take(hosts_, "code", {}));
  TreeLocks apart;
  ASSERT_TRUE(apart.take(hosts_, "other", {})) << "another tree";
  sigset_t blocked;
  sigset_t before;
  sigemptyset(&blocked);
  sigaddset(&blocked, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &blocked, &before);
  raise(SIGTERM);
  TreeLocks second;
  std::string told;
  const Status taken = second.take(hosts_, "code", [&](const std::string& text) { told = text; });
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  ASSERT_FALSE(taken);
  EXPECT_EQ(code_of(taken), Errc::canceled);
  EXPECT_EQ(taken.error().sys, SIGTERM);
  EXPECT_NE(told.find(std::to_string(getpid())), std::string::npos) << told;
}

}  // namespace
}  // namespace lockstep::project
