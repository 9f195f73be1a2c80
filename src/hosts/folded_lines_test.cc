#include "hosts/folded_lines.h"

#include <gtest/gtest.h>

namespace lockstep::hosts {
namespace {

class FoldedLinesTest : public ::testing::Test {
 protected:
  static FoldedLines::Time at(int ms) { return FoldedLines::Time(std::chrono::milliseconds(ms)); }
  std::string taken() { return std::exchange(shown_, {}); }

  std::string shown_;
  FoldedLines lines_{[this](std::string_view text) {
    shown_ += text;
    return Status();
  }};
};

TEST_F(FoldedLinesTest, EqualLinesBecomeOne) {
  for (const char* rank : {"0", "1", "2", "5"})
    ASSERT_TRUE(lines_.put(std::string("[rank") + rank + "]: loss 2.31\n", at(0)));
  ASSERT_TRUE(lines_.put("[rank3]: other\n", at(1)));
  EXPECT_EQ(taken(), "");
  ASSERT_TRUE(lines_.tick(at(150)));
  EXPECT_EQ(taken(), "[0-2,5] loss 2.31\n");
  ASSERT_TRUE(lines_.finish());
  EXPECT_EQ(taken(), "[3] other\n");
}

TEST_F(FoldedLinesTest, LinesComeInPieces) {
  for (const char* piece : {"[ra", "nk0]: a\n[rank1]:", " a\n", "[rank2]: a"})
    ASSERT_TRUE(lines_.put(piece, at(0)));
  ASSERT_TRUE(lines_.tick(at(200)));
  EXPECT_EQ(taken(), "[0-1] a\n");
  ASSERT_TRUE(lines_.tick(at(300)));  // a prompt: no line end has followed
  EXPECT_EQ(taken(), "[rank2]: a");
  ASSERT_TRUE(lines_.put("b\n[rank2]: c\n", at(300)));
  ASSERT_TRUE(lines_.finish());
  EXPECT_EQ(taken(), "b\n[2] c\n");
}

TEST_F(FoldedLinesTest, WhatNoRankSaysComesBehindWhatWaits) {
  ASSERT_TRUE(lines_.put("[rank0]: a\nreport\n[rank0]: 10%\r20%\n[rankx]: b\n", at(0)));
  EXPECT_EQ(taken(), "[0] a\nreport\n[rank0]: 10%\r20%\n[rankx]: b\n");
  ASSERT_TRUE(lines_.put("[rank99999999999]: a\nend", at(0)));
  ASSERT_TRUE(lines_.finish());
  EXPECT_EQ(taken(), "[rank99999999999]: a\nend");
}

// Bytes as in a host's log file when several ranks draw progress bars: each frame ends where the
// next rank's frame begins.
TEST_F(FoldedLinesTest, ABarOfSeveralRanksIsALineASecond) {
  const auto frame = [](int rank, int done) {
    const std::string tag = "[rank" + std::to_string(rank) + "]: ";
    return tag + "\r" + tag + " " + std::to_string(done) + "%|##  | 1/9 [00:01<00:09]";
  };
  for (int step = 0; step < 20; ++step)
    for (int rank = 0; rank < 4; ++rank)
      ASSERT_TRUE(lines_.put(frame(rank, step) + (step + rank == 22 ? "" : "\n"), at(step * 100)));
  ASSERT_TRUE(lines_.tick(at(1950)));
  ASSERT_TRUE(lines_.tick(at(2000)));
  const std::string first = frame(0, 0) + "\n";
  std::string shown = taken();
  ASSERT_TRUE(shown.starts_with(first)) << shown;
  shown.erase(0, first.size());
  EXPECT_EQ(shown, "[0-3]  19%|##  | 1/9 [00:01<00:09]\n");
  EXPECT_TRUE(lines_.waits());  // the unfinished frame of rank 3
  // The last frame is unfinished, and the next frame follows.
  ASSERT_TRUE(lines_.put("\r[rank3]:  20%|##  | 1/9 [00:01<00:09]\n[rank3]: saved\n", at(2100)));
  ASSERT_TRUE(lines_.finish());
  EXPECT_EQ(taken(), "[3]  20%|##  | 1/9 [00:01<00:09]\n[3] saved\n");
}

TEST_F(FoldedLinesTest, ALineWithoutEndIsBounded) {
  ASSERT_TRUE(lines_.put(std::string(70'000, 'x'), at(0)));
  EXPECT_EQ(taken().size(), 70'000U);
  ASSERT_TRUE(lines_.put("y\nz\n", at(0)));
  EXPECT_EQ(taken(), "y\nz\n");
}

}  // namespace
}  // namespace lockstep::hosts
