#include "http/date.h"

#include <gtest/gtest.h>

namespace lockstep::http {
namespace {

constexpr std::int64_t kDay = 784111777;  // 1994-11-06 08:49:37

std::int64_t asked(const char* value, std::int64_t now = kDay) {
  ResponseHead head{.status = 429, .fields = {{"x", "y"}, {"retry-after", value}}};
  const auto pause = retry_after(head, now);
  return pause ? pause->count() : -1;
}

TEST(HttpDate, TheThreeForms) {
  EXPECT_EQ(parse_http_date("Sun, 06 Nov 1994 08:49:37 GMT"), kDay);
  EXPECT_EQ(parse_http_date("Sunday, 06-Nov-94 08:49:37 GMT"), kDay);
  EXPECT_EQ(parse_http_date("Sun Nov  6 08:49:37 1994"), kDay);
  EXPECT_EQ(parse_http_date("Wed, 30 Nov 2050 00:00:00 GMT"), 2553379200);
  for (const char* none : {"", "tomorrow", "Sun, 06 Nov 1994 08:49:37", "1994-11-06T08:49:37Z",
                           "Sun, 06 Nov 1994 08:49:37 GMT+1", "Sun, 32 Nov 1994 08:49:37 GMT"})
    EXPECT_FALSE(parse_http_date(none)) << none;
}

TEST(RetryAfter, SecondsOrADate) {
  EXPECT_EQ(asked("12"), 12);
  EXPECT_EQ(asked("0"), 0);
  EXPECT_EQ(asked("Sun, 06 Nov 1994 08:49:37 GMT", kDay - 30), 30);
  EXPECT_EQ(asked("Sun, 06 Nov 1994 08:49:37 GMT", kDay + 30), 0);
  EXPECT_EQ(asked("99999999999999999999999"), 86'400);
  EXPECT_EQ(asked("Wed, 30 Nov 2050 00:00:00 GMT"), 86'400);
  for (const char* none : {"", "-1", "1.5", "soon"})
    EXPECT_EQ(asked(none), -1) << none;
  EXPECT_FALSE(retry_after(ResponseHead{}, kDay));
}

}  // namespace
}  // namespace lockstep::http
