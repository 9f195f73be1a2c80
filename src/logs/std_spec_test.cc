#include "logs/std_spec.h"

#include "base/error_testing.h"

#include <gtest/gtest.h>

namespace lockstep::logs {
namespace {

TEST(StdSpec, OneValueForEveryRank) {
  for (const int value : {0, 1, 2, 3}) {
    const auto spec = parse_std_spec(std::to_string(value));
    ASSERT_TRUE(spec);
    EXPECT_EQ(spec->of(0), static_cast<Std>(value));
    EXPECT_EQ(spec->of(99), static_cast<Std>(value));
  }
}

TEST(StdSpec, ByRankOfAnyLength) {
  const auto spec = parse_std_spec("0:1,12:3,0:2");
  ASSERT_TRUE(spec);
  EXPECT_EQ(spec->of(0), Std::err);  // the last one wins
  EXPECT_EQ(spec->of(12), Std::all);
  EXPECT_EQ(spec->of(1), Std::none);
  EXPECT_EQ(spec->of(2), Std::none);
}

TEST(StdSpec, RefusesEverythingElse) {
  for (const char* text : {"", "4", "-1", "11", "0:9", "0:", ":1", "0:1,", ",0:1", "0:1,2", "a:1",
                           "0 :1", "0:1 ", " 1", "-1:1", "9999999999:1", "0:1:2", "x"}) {
    const auto spec = parse_std_spec(text);
    ASSERT_FALSE(spec) << text;
    EXPECT_EQ(code_of(spec), Errc::invalid_input);
    EXPECT_NE(spec.error().message.find("does not match: <^[0123]$>"), std::string::npos);
  }
}

}  // namespace
}  // namespace lockstep::logs
