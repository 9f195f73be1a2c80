#include "logs/log_file.h"

#include "io/fd.h"

#include <gtest/gtest.h>

#include <stdlib.h>
#include <unistd.h>

#include <filesystem>

namespace lockstep::logs {
namespace {

TEST(PartThatFits, KeepsLinesWhole) {
  EXPECT_EQ(part_that_fits("a\nb\n", 4, 0), 4U);
  EXPECT_EQ(part_that_fits("a\nb\n", 3, 0), 2U);
  EXPECT_EQ(part_that_fits("a\nb\n", 2, 9), 2U);
  EXPECT_EQ(part_that_fits("a\nb\n", 1, 0), 0U) << "not even one line";
  EXPECT_EQ(part_that_fits("a\n", 0, 0), 0U);
}

TEST(PartThatFits, ALineThatHasBegunIsFinished) {
  EXPECT_EQ(part_that_fits("rest\nnext\n", 2, 99), 5U);
  EXPECT_EQ(part_that_fits("rest\nnext\n", 0, 99), 5U);
  EXPECT_EQ(part_that_fits("rest", 2, 99), 4U);
  EXPECT_EQ(part_that_fits("rest\n", 2, 4), 4U) << "cut";
}

class LogFileTest : public ::testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/log_file_test_XXXXXX";
    path_ = std::string(mkdtemp(name)) + "/log";
  }
  void TearDown() override {
    std::filesystem::remove_all(std::filesystem::path(path_).parent_path());
  }
  std::string text(const std::string& suffix = {}) const {
    return io::read_file(path_ + suffix, 1 << 20).value_or("none");
  }

  std::string path_;
};

TEST_F(LogFileTest, WithoutALimitItGrows) {
  auto file = std::move(*LogFile::open(path_));
  for (int i = 0; i < 1000; ++i)
    file->write("0123456789\n");
  EXPECT_EQ(text().size(), 11000U);
  EXPECT_EQ(text(".1"), "none");
}

TEST_F(LogFileTest, AFullOneIsRenamedAndFiveAreKept) {
  auto file = std::move(*LogFile::open(path_, 8));
  file->write("1\n2\n3\n");
  EXPECT_EQ(text(".1"), "none");
  file->write("4\n5\n");
  EXPECT_EQ(text(".1"), "1\n2\n3\n4\n");
  EXPECT_EQ(text(), "5\n");
  std::string all;
  for (int i = 0; i < 40; ++i)
    all += std::to_string(100 + i) + "\n";
  file->write(all);
  EXPECT_EQ(text(), "139\n");
  EXPECT_EQ(text(".1"), "137\n138\n");
  EXPECT_EQ(text(".5"), "129\n130\n");
  EXPECT_EQ(text(".6"), "none");
  EXPECT_EQ(file->lost(), 0U);
}

TEST_F(LogFileTest, ALineThatComesInPiecesStaysWhole) {
  auto file = std::move(*LogFile::open(path_, 8));
  file->write("1234");
  file->write("567890\nx\n");
  EXPECT_EQ(text(".1"), "1234567890\n");
  EXPECT_EQ(text(), "x\n");
}

TEST_F(LogFileTest, ALineLongerThanTheLimitStaysWhole) {
  auto file = std::move(*LogFile::open(path_, 8));
  file->write("1234567890\nx\n");
  EXPECT_EQ(text(".1"), "1234567890\n");
  EXPECT_EQ(text(), "x\n");
}

TEST_F(LogFileTest, ALineWithoutEndIsCutHoweverItComes) {
  auto file = std::move(*LogFile::open(path_, 8));
  for (int i = 0; i < 20; ++i)
    file->write(std::string(kLongestLine / 8, 'x'));
  file->write(std::string(kLongestLine, 'y'));
  EXPECT_EQ(text(".1").size(), kLongestLine + 8);
  EXPECT_EQ(text(".2").size(), kLongestLine + 8);
  EXPECT_EQ(text(".3").size(), kLongestLine + 8);
  EXPECT_EQ(text().size(), kLongestLine / 2 - 24);
  EXPECT_EQ(file->lost(), 0U);
}

// Otherwise a full disk would push out files written before the disk was full.
TEST_F(LogFileTest, WhatCouldNotBeWrittenRotatesNothing) {
  symlink("/dev/full", path_.c_str());
  auto file = std::move(*LogFile::open(path_, 8));
  for (int i = 0; i < 9; ++i)
    file->write("1234\n");
  EXPECT_EQ(file->lost(), 45U);
  EXPECT_EQ(text(".1"), "none");
}

TEST_F(LogFileTest, OneThatCannotBeRenamedGrowsOn) {
  auto file = std::move(*LogFile::open(path_, 8));
  for (int i = 1; i <= LogFile::kOlder; ++i)
    std::filesystem::create_directories(path_ + "." + std::to_string(i) + "/in the way");
  file->write("1\n2\n3\n4\n5\n");
  EXPECT_EQ(text(), "1\n2\n3\n4\n5\n");
}

}  // namespace
}  // namespace lockstep::logs
