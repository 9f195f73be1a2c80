#include "base/line_cutter.h"

#include <gtest/gtest.h>

namespace lockstep {
namespace {

TEST(LineCutter, LinesComeOutWholeHoweverTheyCameIn) {
  LineCutter lines(10);
  lines.put("on");
  EXPECT_FALSE(lines.next());
  lines.put("e\n\ntwo\nth");
  EXPECT_EQ(lines.next(), "one");
  EXPECT_EQ(lines.next(), "");
  EXPECT_EQ(lines.rest(), "two\nth");
  EXPECT_EQ(lines.next(), "two");
  EXPECT_FALSE(lines.next());
  EXPECT_EQ(lines.rest(), "th");
  lines.put("ree\n");
  EXPECT_EQ(lines.next(), "three");
}

TEST(LineCutter, ALineThatDoesNotEndIsTooLong) {
  LineCutter lines(3);
  lines.put("abc");
  EXPECT_FALSE(lines.too_long());
  lines.put("d");
  EXPECT_TRUE(lines.too_long());
}

}  // namespace
}  // namespace lockstep
