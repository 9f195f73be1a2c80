#include "logs/line_prefix.h"

#include <gtest/gtest.h>

#include <stdlib.h>
#include <time.h>

namespace lockstep::logs {
namespace {

TEST(LinePrefix, WithoutATimeItIsTheTextItself) {
  EXPECT_FALSE(LinePrefix().timed());
  EXPECT_EQ(LinePrefix().at({}), "");
  EXPECT_FALSE(LinePrefix("[default0]:").timed());
  EXPECT_EQ(LinePrefix("[default0]:").at({}), "[default0]:");
}

TEST(LinePrefix, TheTimeIsLocalWithMilliseconds) {
  setenv("TZ", "UTC-2", 1);  // two hours east of Greenwich
  tzset();
  const LinePrefix prefix(std::string("<") + LinePrefix::kTime + "> " + LinePrefix::kTime + "|");
  EXPECT_TRUE(prefix.timed());
  const std::chrono::system_clock::time_point now(std::chrono::milliseconds(1790000000007));
  EXPECT_EQ(prefix.at(now), "<2026-09-21 16:13:20.007> 2026-09-21 16:13:20.007|");
  unsetenv("TZ");
  tzset();
}

}  // namespace
}  // namespace lockstep::logs
