#include "agent/past_run_file.h"

#include "io/fd.h"

#include <gtest/gtest.h>

#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <string>

namespace lockstep::agent {
namespace {

namespace fs = std::filesystem;

// A state folder of its own, on a local disk.
class PastRunFile : public testing::Test {
 protected:
  PastRunFile() : home_(getenv("HOME") == nullptr ? "" : getenv("HOME")) {
    char base[] = "/tmp/past_runs_XXXXXX";
    base_ = mkdtemp(base);
    setenv("XDG_STATE_HOME", (base_ + "/state").c_str(), 1);
  }
  ~PastRunFile() override {
    unsetenv("XDG_STATE_HOME");
    setenv("HOME", home_.c_str(), 1);
    std::error_code ignored;
    fs::remove_all(base_, ignored);
  }
  std::string path() const { return base_ + "/state/lockstep/last-runs.json"; }
  static std::optional<PastRun> note(std::int64_t duration_ms, const std::string& key = "a") {
    return note_past_run({.key = key, .outcome = "succeeded", .duration_ms = duration_ms});
  }

  std::string home_;
  std::string base_;
};

TEST_F(PastRunFile, ARunIsKeptForTheNext) {
  EXPECT_FALSE(note(1));
  EXPECT_FALSE(note(2, "b"));
  ASSERT_TRUE(fs::exists(path()));
  EXPECT_EQ(note(3)->duration_ms, 1);
  EXPECT_EQ(note(4)->duration_ms, 3);
  EXPECT_EQ(note(5, "b")->duration_ms, 2);
  EXPECT_EQ(std::distance(fs::directory_iterator(base_ + "/state/lockstep"), {}), 1)
      << "no drafts, no locks";
}

TEST_F(PastRunFile, ADamagedFileIsReplaced) {
  EXPECT_FALSE(note(1));
  for (const std::string& bytes : {std::string("{\"runs\":[{"), std::string(300'000, '['),
                                   std::string("\0\xff\n", 3), std::string()}) {
    ASSERT_TRUE(io::write_file(path(), bytes));
    EXPECT_FALSE(note(7));
    EXPECT_EQ(note(8)->duration_ms, 7);
  }
  fs::resize_file(path(), 5UL << 30);  // sparse
  note(9);
  EXPECT_LT(fs::file_size(path()), 1000U);
}

TEST_F(PastRunFile, WhatIsNoFileIsLeftAlone) {
  EXPECT_FALSE(note(1));
  fs::remove(path());
  ASSERT_EQ(mkfifo(path().c_str(), 0600), 0);
  EXPECT_FALSE(note(2));
  EXPECT_TRUE(fs::is_fifo(path()));
  fs::remove(path());
  fs::create_directory(path());
  EXPECT_FALSE(note(3));
  EXPECT_TRUE(fs::is_directory(path()));
}

TEST_F(PastRunFile, WithoutAFolderNothingIsKept) {
  setenv("XDG_STATE_HOME", "/proc/none", 1);  // not a local disk
  EXPECT_FALSE(note(1));
  EXPECT_FALSE(note(2));
  setenv("XDG_STATE_HOME", (base_ + "/file").c_str(), 1);
  ASSERT_TRUE(io::write_file(base_ + "/file", "x"));
  EXPECT_FALSE(note(3));
  EXPECT_FALSE(note(4));
  unsetenv("XDG_STATE_HOME");
  setenv("HOME", "/", 1);
  const bool before = fs::exists("/.local/state/lockstep");
  EXPECT_FALSE(note(5));
  EXPECT_EQ(fs::exists("/.local/state/lockstep"), before);
}

TEST_F(PastRunFile, TheKeyIsThatOfTheCommandAndItsFolder) {
  const fs::path before = fs::current_path();
  fs::current_path(base_);
  launch::LaunchConfig config;
  config.command = {"python", "train.py", "--token", "secret"};
  const std::string key = past_run_key(config);
  EXPECT_EQ(key.size(), 32U);
  EXPECT_EQ(key.find_first_not_of("0123456789abcdef"), std::string::npos);
  config.max_restarts = 3;
  EXPECT_EQ(past_run_key(config), key);
  config.nproc = 2;
  EXPECT_NE(past_run_key(config), key);
  config.nproc = 1;
  config.command = {"python", "train.py", "--tokensecret"};
  EXPECT_NE(past_run_key(config), key);
  config.command = {"python", "train.py", "--token", "secret"};
  fs::create_directory(base_ + "/other");
  fs::current_path(base_ + "/other");
  EXPECT_NE(past_run_key(config), key);
  fs::remove(base_ + "/other");
  EXPECT_EQ(past_run_key(config), "") << "the folder is gone";
  fs::current_path(before);
}

}  // namespace
}  // namespace lockstep::agent
