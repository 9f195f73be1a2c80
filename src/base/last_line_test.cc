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

}  // namespace
}  // namespace lockstep
