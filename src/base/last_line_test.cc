#include "base/last_line.h"

#include <gtest/gtest.h>

namespace lockstep {
namespace {

TEST(LastLine, IsTheLastThatSaysSomething) {
  EXPECT_EQ(last_line("first\n  the last \t\r\n\n \n"), "the last");
  EXPECT_EQ(last_line("  only"), "only");
  EXPECT_EQ(last_line(" \n\t"), "");
  EXPECT_EQ(last_line(""), "");
}

TEST(LastLines, BeginWhereALineBegins) {
  EXPECT_EQ(last_lines("a\nb\nc\n", 2), "b\nc\n");
  EXPECT_EQ(last_lines("a\nb\nc", 2), "b\nc") << "a line without an end is one";
  EXPECT_EQ(last_lines("a\n\n", 1), "\n") << "an empty line is one";
  EXPECT_EQ(last_lines("a\nb\n", 2), "a\nb\n");
  EXPECT_EQ(last_lines("a\nb\n", 9), "a\nb\n");
  EXPECT_EQ(last_lines("a\nb\n", 0), "");
  EXPECT_EQ(last_lines("", 3), "");
}

TEST(LastLines, AreFoundFromTheEndBackInChunks) {
  LastLines lines(2);
  EXPECT_FALSE(lines.look_back("c\n"));
  EXPECT_FALSE(lines.look_back("b\n"));
  EXPECT_EQ(lines.look_back("a\n"), 2U);
}

}  // namespace
}  // namespace lockstep
