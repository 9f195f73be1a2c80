#include "sync/wildmatch.h"

#include <gtest/gtest.h>

#include <chrono>
#include <string>

namespace lockstep::sync {
namespace {

bool apart(std::string_view pattern, std::string_view text) {
  return wildmatch(pattern, text, Slashes::apart);
}
bool plain(std::string_view pattern, std::string_view text) {
  return wildmatch(pattern, text, Slashes::plain);
}

TEST(Wildmatch, ComparesPlainText) {
  EXPECT_TRUE(apart("foo", "foo"));
  EXPECT_FALSE(apart("foo", "foobar"));
  EXPECT_FALSE(apart("foobar", "foo"));
  EXPECT_TRUE(apart("", ""));
  EXPECT_FALSE(apart("", "x"));
  EXPECT_TRUE(apart("\\*x", "*x"));
  EXPECT_FALSE(apart("\\*x", "yx"));
  EXPECT_FALSE(apart("foo\\", "foo"));
}

TEST(Wildmatch, KnowsStarsAndSlashes) {
  EXPECT_TRUE(apart("*.c", "a.c"));
  EXPECT_FALSE(apart("*.c", "a/b.c"));
  EXPECT_TRUE(plain("*.c", "a/b.c"));
  EXPECT_TRUE(apart("a?c", "abc"));
  EXPECT_FALSE(apart("a?c", "a/c"));
  EXPECT_TRUE(apart("a/*/c", "a/b/c"));
  EXPECT_FALSE(apart("a/*/c", "a/b/b/c"));
  EXPECT_TRUE(apart("a/**/c", "a/c"));
  EXPECT_TRUE(apart("a/**/c", "a/b/b/c"));
  EXPECT_TRUE(apart("**/c", "c"));
  EXPECT_TRUE(apart("**/c", "a/b/c"));
  EXPECT_TRUE(apart("a/**", "a/b/c"));
  EXPECT_FALSE(apart("a**c", "a/c"));
  EXPECT_TRUE(apart("a**c", "abbc"));
  EXPECT_TRUE(apart("-*-*-*-*-*-*-12-*-*-*-m-*-*-*",
                    "-adobe-courier-bold-o-normal--12-120-75-75-m-70-iso8859-1"));
}

TEST(Wildmatch, KnowsClasses) {
  EXPECT_TRUE(apart("[a-c]x", "bx"));
  EXPECT_FALSE(apart("[!a-c]x", "bx"));
  EXPECT_TRUE(apart("[^a-c]x", "dx"));
  EXPECT_TRUE(apart("[]]", "]"));
  EXPECT_TRUE(apart("[]-]", "-"));
  EXPECT_TRUE(apart("[\\]]", "]"));
  EXPECT_TRUE(apart("[[:digit:]_]", "7"));
  EXPECT_TRUE(apart("[[:digit:]_]", "_"));
  EXPECT_FALSE(apart("[[:digit:]]", "x"));
  EXPECT_FALSE(apart("[[:nonsense:]x]", "x"));
  EXPECT_FALSE(apart("[a", "a"));
  EXPECT_FALSE(apart("a[/]b", "a/b"));
  EXPECT_TRUE(plain("a[/]b", "a/b"));
  EXPECT_TRUE(apart("[\xC0-\xFF]", "\xE9"));
}

// These patterns take exponential time without a limit.
TEST(Wildmatch, EndsOnEveryPattern) {
  std::string pattern;
  for (int i = 0; i < 30; ++i)
    pattern += "**/*a";
  const std::string text(2000, 'a');
  EXPECT_FALSE(apart(pattern + "b", text));
  EXPECT_FALSE(plain(pattern + "b", text));
}

// Each "**/" is a call inside the one before, so a long pattern overflowed the stack.
TEST(Wildmatch, MatchesNothingByAPatternLongerThanAPath) {
  std::string pattern;
  for (int i = 0; i < 200'000; ++i)
    pattern += "**/";
  EXPECT_FALSE(apart(pattern + "b", "a/b"));
}

}  // namespace
}  // namespace lockstep::sync
