// Silence is measured without the time in which this process was stopped.
#include "rendezvous/hub/silence_clock.h"

#include <gtest/gtest.h>

namespace lockstep::rendezvous::hub {
namespace {
using namespace std::chrono_literals;

constexpr Time kStart{1h};

TEST(SilenceClock, CountsTheTimeBetweenTicks) {
  SilenceClock clock(1s, kStart);
  clock.tick(kStart + 1s);
  clock.tick(kStart + 2500ms);
  EXPECT_EQ(clock.at_tick(), 2500ms);
  EXPECT_EQ(clock.read(kStart + 2700ms), 2700ms);
  EXPECT_EQ(clock.last_tick(), kStart + 2500ms);
}

TEST(SilenceClock, CountsHalfAHeartbeatOfAPause) {
  SilenceClock clock(1s, kStart);
  clock.tick(kStart + 1501ms);
  EXPECT_EQ(clock.at_tick(), 500ms);
  EXPECT_EQ(clock.read(kStart + 90s), 1s);
}

TEST(SilenceClock, NeverGoesBack) {
  SilenceClock clock(1s, kStart);
  EXPECT_EQ(clock.read(kStart - 1s), 0ms);
}

}  // namespace
}  // namespace lockstep::rendezvous::hub
