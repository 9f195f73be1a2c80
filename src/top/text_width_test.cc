#include "top/text_width.h"

#include <gtest/gtest.h>

namespace lockstep::top {
namespace {

TEST(TextWidth, CountsColumnsAndNotBytes) {
  EXPECT_EQ(columns_of(""), 0U);
  EXPECT_EQ(columns_of("step 1"), 6U);
  EXPECT_EQ(columns_of("Größe"), 5U);
  EXPECT_EQ(columns_of("损失 1"), 6U);
  EXPECT_EQ(columns_of("e\u0301"), 1U);
  EXPECT_EQ(columns_of("\U0001F525"), 2U);
  EXPECT_EQ(columns_of("████"), 4U);
}

TEST(TextWidth, CutsBetweenCharacters) {
  EXPECT_EQ(cut_to("Größe", 3), "Grö");
  EXPECT_EQ(cut_to("损失", 3), "损");
  EXPECT_EQ(cut_to("损失", 1), "");
  EXPECT_EQ(cut_to("e\u0301x", 1), "e\u0301");
  EXPECT_EQ(cut_to("abc", 100), "abc");
  EXPECT_EQ(cut_to("\xff\xfe", 1), "\xff") << "malformed bytes count as one column";
}

TEST(TextWidth, FitsExactly) {
  EXPECT_EQ(fitted("ab", 4), "ab  ");
  EXPECT_EQ(fitted("ab", 4, Side::right), "  ab");
  EXPECT_EQ(fitted("损失", 3), "损 ");
  EXPECT_EQ(fitted("abc", 0), "");
}

}  // namespace
}  // namespace lockstep::top
