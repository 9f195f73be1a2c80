#include "logs/tail_ring.h"

#include <gtest/gtest.h>

#include <random>

namespace lockstep::logs {
namespace {

TEST(NewestBytes, KeepsAtLeastTheNewestFourKiB) {
  std::mt19937 random(5);
  std::string all;
  NewestBytes newest;
  for (int i = 0; i < 500; ++i) {
    std::string piece(random() % (i % 50 == 49 ? 20000 : 300), static_cast<char>('a' + i % 26));
    all += piece;
    newest.append(piece);
    const std::size_t least = std::min(all.size(), NewestBytes::kMost);
    ASSERT_GE(newest.bytes().size(), least);
    ASSERT_LE(newest.bytes().size(), 2 * NewestBytes::kMost);
    ASSERT_TRUE(all.ends_with(newest.bytes()));
  }
}

TEST(TailRing, HasWordsAcrossTheEndOfTheRing) {
  TailRing ring;
  EXPECT_FALSE(ring.has("a watchdog"));
  ring.append(std::string(TailRing::kSize - 4, '.') + "a watchdog fires");
  EXPECT_TRUE(ring.has("a watchdog"));
  EXPECT_FALSE(ring.has("a dog"));
  ring.append(std::string(TailRing::kSize - 8, '.'));
  EXPECT_FALSE(ring.has("a watchdog"));
}

TEST(NewestLine, IsWholeAndNotBlank) {
  EXPECT_EQ(newest_line(""), "");
  EXPECT_EQ(newest_line("half"), "");
  EXPECT_EQ(newest_line("one\n"), "one");
  EXPECT_EQ(newest_line("one\ntwo\nhal"), "two");
  EXPECT_EQ(newest_line("one\n\n  \n"), "one");
  EXPECT_EQ(newest_line("\n\n"), "");
  EXPECT_EQ(newest_line("\x1b[31mred\x1b[0m\x07\n"), "red\\x07");
}

TEST(NewestLine, IsNotAboutDumps) {
  EXPECT_EQ(
      newest_line("step 3\n[rank0]:[E1126 22:04:23 ProcessGroupNCCL.cpp:1628] [PG ID 0 Rank 0] "
                  "ProcessGroupNCCL preparing to dump debug info. Include stack trace: 1\n"),
      "step 3");
}

TEST(NewestLine, OfAProgressBarIsItsNewestDrawing) {
  EXPECT_EQ(newest_line("start\n\r 10%|#\r 20%|##"), " 20%|##");
  EXPECT_EQ(newest_line("\r 99%\r100%\n"), "100%");
  EXPECT_EQ(newest_line("one\n\r"), "one");
}

TEST(TailRing, KeepsTheLastBytesHoweverTheyCome) {
  std::mt19937 random(4);
  std::string all;
  TailRing ring;
  for (int i = 0; i < 200; ++i) {
    std::string piece(random() % (i % 50 == 49 ? 200000 : 3000), ' ');
    for (char& c : piece)
      c = static_cast<char>('a' + random() % 26);
    all += piece;
    ring.append(piece);
    const std::size_t kept = std::min(all.size(), TailRing::kSize);
    ASSERT_EQ(ring.bytes(), all.substr(all.size() - kept));
    ASSERT_EQ(ring.cut(), all.size() > TailRing::kSize);
  }
}

TEST(TailText, GivesTheLastLines) {
  EXPECT_EQ(tail_text("a\nb\nc\n", 2, false), "b\nc");
  EXPECT_EQ(tail_text("a\nb\nc", 2, false), "b\nc");
  EXPECT_EQ(tail_text("a\nb", 20, false), "a\nb");
  EXPECT_EQ(tail_text("\n\nx\n", 20, false), "\n\nx");
  EXPECT_EQ(tail_text("", 20, false), "");
  EXPECT_EQ(tail_text("\n", 20, true), "");
  EXPECT_EQ(tail_text("x\n", 0, false), "");
}

TEST(TailText, LeavesOutThePieceOfALineAtTheCut) {
  EXPECT_EQ(tail_text("ece\nb\n", 20, true), "b");
  EXPECT_EQ(tail_text("only a piece", 20, true), "only a piece");
  EXPECT_EQ(tail_text("ece\nb\nc\n", 2, true), "b\nc");
}

TEST(TailText, IsPrintable) {
  EXPECT_EQ(tail_text(std::string_view("a\0b\x07\x7f\tc", 7), 9, false), "a\\x00b\\x07\\x7f\tc");
  EXPECT_EQ(tail_text("\x1b[1;31mred\x1b[0m \x1b]0;", 9, false), "red \\x1b]0;");
  EXPECT_EQ(tail_text("\xc3\xa4 \xff \xc3( \xed\xa0\x80", 9, false),
            "\xc3\xa4 \\xff \\xc3( \\xed\\xa0\\x80");
  EXPECT_EQ(tail_text("\xc2\x9b"
                      "2J",
                      9, false),
            "\\xc2\\x9b"
            "2J");
  EXPECT_EQ(tail_text(" 10%\r 20%\r 30%\nend\r\n", 9, false), " 30%\nend");
}

}  // namespace
}  // namespace lockstep::logs
