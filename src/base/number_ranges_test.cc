#include "base/number_ranges.h"

#include <gtest/gtest.h>

#include <limits>

namespace lockstep {
namespace {

TEST(NumberRanges, NeighboursAreFolded) {
  EXPECT_EQ(ranges_text(std::vector<int>{0, 1, 2, 5}), "0-2, 5");
  EXPECT_EQ(ranges_text(std::vector<int>{7}), "7");
  EXPECT_EQ(ranges_text({}), "");
  EXPECT_EQ(ranges_text(std::vector<int>{0, 2, 4, 6}, 2), "0, 2, ...");
}

TEST(NumberRanges, WhatIsPrintedIsParsed) {
  for (const std::vector<int>& numbers :
       {std::vector<int>{}, std::vector<int>{3}, std::vector<int>{0, 1, 2, 5, 6, 9},
        std::vector<int>{std::numeric_limits<int>::max()}})
    EXPECT_EQ(parse_ranges(ranges_text(numbers), 64), numbers);
  EXPECT_EQ(parse_ranges("0-1,3", 3), (std::vector<int>{0, 1, 3}));
}

TEST(NumberRanges, MalformedOrTooManyNumbersAreRefused) {
  for (const char* text : {"a", "1-", "-1", "3-1", "1,,2", "1,", "+1", "0-9", "0-2147483647",
                           "99999999999", "0, 1, 2, 3, 4"})
    EXPECT_FALSE(parse_ranges(text, 4)) << text;
}

}  // namespace
}  // namespace lockstep
