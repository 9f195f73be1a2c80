#include "cloud/time_text.h"

#include <gtest/gtest.h>

namespace lockstep::cloud {
namespace {

TEST(CloudTime, IsReadAndWritten) {
  EXPECT_EQ(parse_iso_time("1970-01-01T00:00:01Z"), 1000);
  EXPECT_EQ(parse_iso_time("2026-11-23T06:00:00Z"), 1'795'413'600'000);
  EXPECT_EQ(parse_iso_time("2026-11-23T06:00:00.250Z"), 1'795'413'600'250);
  EXPECT_EQ(parse_iso_time("2026-11-23T07:00:00.123456+01:00"), 1'795'413'600'123);
  EXPECT_EQ(parse_iso_time("2026-11-22T22:30:00-07:30"), 1'795'413'600'000);
  EXPECT_EQ(iso_time(1'795'413'600'250), "2026-11-23T06:00:00Z");
}

TEST(CloudTime, WrongOnesAreNone) {
  for (const char* wrong :
       {"", "2026-11-23", "2026-13-23T06:00:00Z", "2026-11-31T06:00:00Z", "2026-11-23T25:00:00Z",
        "2026-11-23T06:00:00", "2026-11-23T06:00:00Zx", "2026-11-23T06:00:00+1:00", "x"})
    EXPECT_FALSE(parse_iso_time(wrong)) << wrong;
}

}  // namespace
}  // namespace lockstep::cloud
