#include "base/utf8.h"

#include <gtest/gtest.h>

namespace lockstep {
namespace {

TEST(Utf8, LengthOfWhatIsWellFormed) {
  const std::pair<std::string_view, std::size_t> cases[] = {
      {"", 0},
      {"a", 1},
      {std::string_view("\0", 1), 1},
      {"\xc3\xa9z", 2},
      {"\xe2\x82\xac", 3},
      {"\xf0\x9f\x9a\x80", 4},
      {"\xf4\x8f\xbf\xbf", 4},
      {"\x9b", 0},              // no lead
      {"\xc0\x80", 0},          // overlong
      {"\xe0\x9f\xbf", 0},      // overlong
      {"\xf0\x8f\xbf\xbf", 0},  // overlong
      {"\xed\xa0\x80", 0},      // surrogate
      {"\xf4\x90\x80\x80", 0},  // beyond
      {"\xe2\x82", 0},          // cut
      {"\xe2\x82z", 0},
  };
  for (const auto& [text, length] : cases)
    EXPECT_EQ(utf8_length(text), length) << ::testing::PrintToString(text);
}

TEST(Utf8, ControlCharactersAreNotShown) {
  for (const char* text : {"\x1b", "\n", "\x7f", "\xc2\x80", "\xc2\x9b", "\xc2\x9f", "\x9b",
                           "\xe2\x80\xae", "\xe2\x81\xa6"})
    EXPECT_EQ(shown_length(text), 0U) << ::testing::PrintToString(text);
  for (const char* text :
       {" ", "~", "\xc2\xa0", "\xc3\x9b", "\xdf\xbf", "\xe2\x80\x8f", "\xe2\x82\xac"})
    EXPECT_NE(shown_length(text), 0U) << ::testing::PrintToString(text);
}

TEST(Utf8, AWholeText) {
  for (const char* good : {"", "a", "\xc2\x80", "\xe2\x82\xac", "\xed\x9f\xbf", "\xee\x80\x80",
                           "\xf0\x9f\x98\x80", "\xf4\x8f\xbf\xbf"})
    EXPECT_TRUE(is_utf8(good)) << good;
  for (const char* bad :
       {"\x80", "\xc0\x80", "\xc1\xbf", "\xe0\x80\x80", "\xed\xa0\x80", "\xf0\x80\x80\x80",
        "\xf4\x90\x80\x80", "\xf5\x80\x80\x80", "\xe2\x82", "\xc2", "\xc2\x61"})
    EXPECT_FALSE(is_utf8(bad));
}

}  // namespace
}  // namespace lockstep
