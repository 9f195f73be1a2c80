#include "sync/ignore.h"

#include <gtest/gtest.h>

namespace lockstep::sync {
namespace {

std::optional<bool> about(std::string_view text, std::string_view path, bool is_folder = false,
                          std::string base = {}) {
  return IgnoreRules(text, std::move(base)).about(path, is_folder);
}

TEST(IgnoreRules, SkipCommentsAndEmptyLines) {
  EXPECT_EQ(about("# x\n\n   \n", "x"), std::nullopt);
  EXPECT_EQ(about("\\#x\n", "#x"), true);
  EXPECT_EQ(about("\\!x\n", "!x"), true);
  EXPECT_EQ(about("\xEF\xBB\xBFx", "x"), true);
  EXPECT_EQ(about("x\r\n", "x"), true);
  EXPECT_EQ(about("x\ny", "y"), true);
}

TEST(IgnoreRules, StripTrailingSpacesUnlessEscaped) {
  EXPECT_EQ(about("x  \n", "x"), true);
  EXPECT_EQ(about("x\\ \n", "x "), true);
  EXPECT_EQ(about("x\\  \n", "x "), true);
  EXPECT_EQ(about(" x\n", " x"), true);
  EXPECT_EQ(about("x\t\n", "x"), std::nullopt);
}

TEST(IgnoreRules, TheLastLineDecides) {
  EXPECT_EQ(about("*.log\n!keep.log\n", "a/keep.log"), false);
  EXPECT_EQ(about("!keep.log\n*.log\n", "keep.log"), true);
  EXPECT_EQ(about("*.log\n", "x.txt"), std::nullopt);
}

TEST(IgnoreRules, ASlashBindsToTheFileItStandsIn) {
  EXPECT_EQ(about("/x", "x"), true);
  EXPECT_EQ(about("/x", "a/x"), std::nullopt);
  EXPECT_EQ(about("a/x", "a/x"), true);
  EXPECT_EQ(about("a/x", "b/a/x"), std::nullopt);
  EXPECT_EQ(about("x", "a/b/x"), true);
  EXPECT_EQ(about("/x", "a/x", false, "a"), true);
  EXPECT_EQ(about("/x", "ab/x", false, "a"), std::nullopt);
  EXPECT_EQ(about("x/y", "a/x/y", false, "a"), true);
}

TEST(IgnoreRules, ASlashBehindMeansFolders) {
  EXPECT_EQ(about("x/", "x"), std::nullopt);
  EXPECT_EQ(about("x/", "a/x", true), true);
  EXPECT_EQ(about("/a/x/", "a/x", true), true);
  EXPECT_EQ(about("/", "a", true), std::nullopt);
}

TEST(IgnoreRules, TwoStarsCrossFolders) {
  EXPECT_EQ(about("**/x", "a/b/x"), true);
  EXPECT_EQ(about("a/**", "a/b/x"), true);
  EXPECT_EQ(about("a/**/x", "a/x"), true);
  EXPECT_EQ(about("a/*/x", "a/b/c/x"), std::nullopt);
  // git compares the plain text before the stars separately.
  EXPECT_EQ(about("a/b**/x", "a/bc/d/x"), true);
}

}  // namespace
}  // namespace lockstep::sync
