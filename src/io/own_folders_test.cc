#include "io/own_folders.h"

#include "base/error_testing.h"

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace lockstep::io {
namespace {

// The folders depend on the environment only, which is restored afterwards.
class OwnFolders : public testing::Test {
 protected:
  OwnFolders() : home_(getenv("HOME") == nullptr ? "" : getenv("HOME")) {
    for (const char* name : {"XDG_STATE_HOME", "XDG_CACHE_HOME", "XDG_DATA_HOME"})
      unsetenv(name);
    setenv("HOME", "/home/me", 1);
  }
  ~OwnFolders() override {
    unsetenv("XDG_STATE_HOME");
    setenv("HOME", home_.c_str(), 1);
  }
  std::string home_;
};

TEST_F(OwnFolders, LieBelowTheHome) {
  EXPECT_EQ(state_folder(), "/home/me/.local/state/lockstep");
  EXPECT_EQ(cache_folder(), "/home/me/.cache/lockstep");
  EXPECT_EQ(data_folder(), "/home/me/.local/share/lockstep");
}

TEST_F(OwnFolders, AVariableMovesThemIfItIsAnAbsolutePath) {
  setenv("XDG_STATE_HOME", "/var/me", 1);
  EXPECT_EQ(state_folder(), "/var/me/lockstep");
  setenv("XDG_STATE_HOME", "me", 1);
  EXPECT_EQ(state_folder(), "/home/me/.local/state/lockstep");
}

TEST_F(OwnFolders, WithoutHomeThePasswdFileKnowsIt) {
  unsetenv("HOME");
  EXPECT_TRUE(home_folder().starts_with('/'));
  const std::string passwd = "root:x:0:0:root:/root:/bin/bash\n#\nme:x:2001:5::/home/me:/bin/sh\n";
  EXPECT_EQ(home_in_passwd(passwd, 2001), "/home/me");
  EXPECT_EQ(home_in_passwd(passwd, 0), "/root");
  EXPECT_EQ(home_in_passwd(passwd, 1), "");
}

TEST_F(OwnFolders, AreMadeForThisUserAlone) {
  char base[] = "/tmp/own_folders_XXXXXX";
  ASSERT_NE(mkdtemp(base), nullptr);
  const std::string path = std::string(base) + "/a/b";
  ASSERT_TRUE(make_folders(path));
  ASSERT_TRUE(make_folders(path));
  struct stat info {};
  ASSERT_EQ(stat(path.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777U, 0700U);
  std::ofstream(std::string(base) + "/file") << "x";
  const auto made = make_folders(std::string(base) + "/file");
  ASSERT_FALSE(made);
  EXPECT_NE(made.error().message.find("file"), std::string::npos);
  // The error names the obstacle, not the folder below it.
  const auto below = make_folders(std::string(base) + "/file/below/deeper");
  ASSERT_FALSE(below);
  EXPECT_NE(below.error().message.find("/file: "), std::string::npos) << below.error().message;
  std::filesystem::remove_all(base);
}

// A folder open to others stands in for another user's folder.
TEST_F(OwnFolders, AnotherUserCanNotTakeTheNameAway) {
  char base[] = "/tmp/own_folders_XXXXXX";
  ASSERT_NE(mkdtemp(base), nullptr);
  const std::string usual = fmt::format("{}/lockstep-{}", base, geteuid());
  EXPECT_EQ(own_folder_in(base, 0).value(), usual);
  EXPECT_EQ(own_folder_in(base, 0).value(), usual);
  std::filesystem::permissions(usual, std::filesystem::perms(0755));
  EXPECT_EQ(own_folder_in(base, 0055).value(), usual);
  EXPECT_EQ(own_folder_in(base, 0).value(), usual + "-2");
  std::filesystem::permissions(usual, std::filesystem::perms(0777));
  std::filesystem::create_directory_symlink(usual + "-2", usual + "-3");
  EXPECT_EQ(own_folder_in(base, 0055).value(), usual + "-2");
  std::filesystem::permissions(usual + "-2", std::filesystem::perms(0777));
  EXPECT_EQ(own_folder_in(base, 0055).value(), usual + "-4");
  const auto make_file = [](const std::string& path) { const std::ofstream made(path); };
  for (int number = 4; number <= 9; ++number)
    make_file(fmt::format("{}-{}", usual, number));
  std::filesystem::remove_all(usual + "-4");
  make_file(usual + "-4");
  EXPECT_EQ(code_of(own_folder_in(base, 0055)), Errc::denied);
  std::filesystem::remove_all(base);
}

}  // namespace
}  // namespace lockstep::io
