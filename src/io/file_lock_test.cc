#include "io/file_lock.h"

#include "base/error_testing.h"

#include <gtest/gtest.h>

#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <thread>

namespace lockstep::io {
namespace {

using IfHeld = FileLock::IfHeld;
using Kind = FileLock::Kind;

class FileLockTest : public ::testing::Test {
 protected:
  void SetUp() override { std::filesystem::remove(path_); }
  void TearDown() override { std::filesystem::remove(path_); }

  const std::string path_ = ::testing::TempDir() + "/file_lock_" + std::to_string(getpid());
};

TEST_F(FileLockTest, OneHolderKeepsOthersOutUntilItIsGone) {
  EXPECT_FALSE(FileLock::is_held(path_).value());
  {
    const auto first = FileLock::take(path_, IfHeld::fail);
    ASSERT_TRUE(first);
    EXPECT_TRUE(first->try_lock().value());  // it has it
    EXPECT_TRUE(FileLock::is_held(path_).value());
    const auto second = FileLock::take(path_, IfHeld::fail);
    ASSERT_FALSE(second);
    EXPECT_EQ(code_of(second), Errc::already_exists);
  }
  EXPECT_FALSE(FileLock::is_held(path_).value());
  EXPECT_TRUE(FileLock::take(path_, IfHeld::fail));
}

TEST_F(FileLockTest, SharedHoldersKeepOnlyAnExclusiveOneOut) {
  const auto one = FileLock::take(path_, IfHeld::fail, Kind::shared);
  const auto two = FileLock::take(path_, IfHeld::fail, Kind::shared);
  ASSERT_TRUE(one && two);
  EXPECT_FALSE(FileLock::take(path_, IfHeld::fail));
  EXPECT_FALSE(FileLock::is_held(path_).value());  // by nobody alone
}

TEST_F(FileLockTest, AReleasedDescriptorKeepsTheLock) {
  Fd kept = std::move(*FileLock::take(path_, IfHeld::fail)).release();
  EXPECT_FALSE(FileLock::take(path_, IfHeld::fail));
  kept.reset();
  EXPECT_TRUE(FileLock::take(path_, IfHeld::fail));
}

TEST_F(FileLockTest, AWaiterGetsTheLockOnceItIsFree) {
  auto holder = FileLock::take(path_, IfHeld::fail);
  ASSERT_TRUE(holder);
  bool waited = false;
  std::thread waiter([&] { waited = FileLock::take(path_, IfHeld::wait).has_value(); });
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  *holder = FileLock();
  waiter.join();
  EXPECT_TRUE(waited);
}

TEST_F(FileLockTest, RangesOfOneFileAreLockedApart) {
  const auto one = FileLock::open(path_);
  const auto two = FileLock::open(path_);
  ASSERT_TRUE(one && two);
  EXPECT_TRUE(one->try_lock_range({.start = 5, .length = 1}).value());
  EXPECT_FALSE(two->try_lock_range({.start = 5, .length = 1}).value());
  EXPECT_TRUE(two->wait_for_range({.start = 6, .length = 1}));
  EXPECT_TRUE(FileLock::range_is_held(path_, {.start = 5, .length = 1}));
  EXPECT_FALSE(FileLock::range_is_held(path_, {.start = 4, .length = 1}));
  EXPECT_TRUE(FileLock::range_is_held(path_, {}));  // all of it
  EXPECT_FALSE(FileLock::is_held(path_).value());   // flock(2) does not see them
  EXPECT_FALSE(FileLock::range_is_held(path_ + ".missing", {}));
}

TEST_F(FileLockTest, ALinkIsNotFollowed) {
  std::filesystem::create_symlink("/dev/null", path_);
  EXPECT_FALSE(FileLock::open(path_));
}

TEST_F(FileLockTest, AnErrorNamesTheFile) {
  const auto lost = FileLock::take("/nowhere/lock", IfHeld::fail);
  ASSERT_FALSE(lost);
  EXPECT_EQ(code_of(lost), Errc::not_found);
  EXPECT_NE(lost.error().message.find("/nowhere/lock"), std::string::npos);
}

}  // namespace
}  // namespace lockstep::io
