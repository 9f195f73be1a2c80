#include "cloud/server_clock.h"

#include <gtest/gtest.h>

namespace lockstep::cloud {
namespace {

constexpr const char* kDate = "Mon, 23 Nov 2026 06:00:00 GMT";
constexpr std::int64_t kThen = 1'795'413'600'000;

TEST(ServerClock, IsComparedWithTheMiddleOfTheQuestion) {
  EXPECT_EQ(server_ahead_ms(kDate, kThen + 400, kThen + 600), 0);
  EXPECT_EQ(server_ahead_ms(kDate, kThen - 60'000, kThen - 59'000), 60'000);
  EXPECT_EQ(server_ahead_ms(kDate, kThen + 60'400, kThen + 60'600), -60'000);
}

TEST(ServerClock, SaysNothingWithoutADateOrAfterALongWait) {
  EXPECT_FALSE(server_ahead_ms("", kThen, kThen));
  EXPECT_FALSE(server_ahead_ms("yesterday", kThen, kThen));
  EXPECT_FALSE(server_ahead_ms(kDate, kThen, kThen + 2'001));
  EXPECT_FALSE(
      server_ahead_ms(kDate, kThen, kThen - 1));  // this machine's clock was changed meanwhile
}

TEST(ServerClock, TheNewestAnswerCounts) {
  note_server_clock(kDate, kThen - 60'000, kThen - 59'000);
  note_server_clock("none", kThen, kThen);
  EXPECT_EQ(known_server_ahead_ms(), 60'000);
}

}  // namespace
}  // namespace lockstep::cloud
