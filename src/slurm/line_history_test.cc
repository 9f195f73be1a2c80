#include "slurm/line_history.h"

#include "slurm/heartbeat_watch.h"

#include <gtest/gtest.h>

namespace lockstep::slurm {
namespace {

std::string missing(std::string_view sent, std::string_view file) {
  LineHistory history(1 << 10);
  history.add(sent);
  return history.missing_from(file);
}

TEST(LineHistory, WhatIsNotThereIsMissing) {
  EXPECT_EQ(missing("a\nb\nc\n", ""), "a\nb\nc\n");
  EXPECT_EQ(missing("a\nb\nc\n", "a\nb\nc\n"), "");
  EXPECT_EQ(missing("a\nb\nc\n", "x\na\ny\nb\nz\n"), "c\n");
  EXPECT_EQ(missing("", "a\n"), "");
}

// The file's beginning was not read. Lines in front of a known line have arrived, too.
TEST(LineHistory, ALineThatArrivedVouchesForThoseBeforeIt) {
  EXPECT_EQ(missing("a\nb\nc\nd\n", "b\nx\n"), "c\nd\n");
}

TEST(LineHistory, EqualLinesAreCounted) {
  EXPECT_EQ(missing("x\nx\nx\n", "x\nx\n"), "x\n");
  EXPECT_EQ(missing("x\na\nx\nx\n", "x\na\nx\n"), "x\n");
}

TEST(LineHistory, ALineThatIsNotWholeYetIsMissing) {
  EXPECT_EQ(missing("a\nhalf", "a\n"), "half");
  EXPECT_EQ(missing("a\nhalf", "a\nhalf"), "half");
}

TEST(LineHistory, OnlyTheLastBytesAreKept) {
  LineHistory history(8);
  for (int i = 0; i < 100; ++i)
    history.add("line " + std::to_string(i) + "\n");
  const std::string kept = history.missing_from("");
  EXPECT_LE(kept.size(), 16U);
  EXPECT_TRUE(kept.ends_with("line 99\n"));
  EXPECT_TRUE(kept.starts_with("line 9"));
}

TEST(HeartbeatWatch, LooksThatFindNothingNewAreCounted) {
  HeartbeatWatch beats;
  for (int i = 0; i < 20; ++i)
    beats.look(std::to_string(i));
  EXPECT_EQ(beats.looks(), 0);
  for (int i = 0; i < 7; ++i)
    beats.look(i % 2 == 0 ? "19" : "");
  EXPECT_FALSE(beats.is_gone());
  beats.look("19");
  EXPECT_TRUE(beats.is_gone());
  beats.look("20");
  EXPECT_FALSE(beats.is_gone());
}

}  // namespace
}  // namespace lockstep::slurm
