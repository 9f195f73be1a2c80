#include "slurm/times.h"

#include <gtest/gtest.h>

#include <stdlib.h>
#include <time.h>

#include <optional>

namespace lockstep::slurm {
namespace {

TEST(Duration, AllOfSlurmsForms) {
  EXPECT_EQ(parse_duration("30"), 1800);
  EXPECT_EQ(parse_duration("0"), 0);
  EXPECT_EQ(parse_duration("30:05"), 1805);
  EXPECT_EQ(parse_duration("2:30:01"), 9001);
  EXPECT_EQ(parse_duration("1-12"), 129600);
  EXPECT_EQ(parse_duration("1-12:30"), 131400);
  EXPECT_EQ(parse_duration("7-00:00:00"), 604800);
}

TEST(Duration, AnythingElseIsNone) {
  for (const char* text : {"", "UNLIMITED", "INFINITE", "-1", "1:2:3:4", "1-", "-", "1--2",
                           "1:", " 5", "+5", "9999999999999"})
    EXPECT_EQ(parse_duration(text), std::nullopt) << text;
}

TEST(MomentText, SecondsOrTheLocalClock) {
  EXPECT_EQ(parse_moment("1795374458"), 1795374458);
  setenv("TZ", "UTC", 1);
  tzset();
  EXPECT_EQ(parse_moment("2026-11-22T19:07:38"), 1795374458);
}

TEST(MomentText, AnythingElseIsNone) {
  for (const char* text : {"", "N/A", "Unknown", "None", "NONE", "(null)", "0", "2026-11-22",
                           "2026-11-22T19:07:3x", "99999999999999999999"})
    EXPECT_EQ(parse_moment(text), std::nullopt) << text;
}

}  // namespace
}  // namespace lockstep::slurm
