#include "jobs/on_hosts/silence.h"

#include <gtest/gtest.h>

namespace lockstep::jobs::on_hosts {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

// Ticks from one moment to another, as while awake.
void tick(Silence& silence, seconds from, seconds to, bool connected) {
  for (milliseconds now = from; now <= to; now += Silence::kTick)
    silence.on_tick(now, connected);
}

TEST(Silence, IsNoneWhileConnected) {
  Silence silence(seconds(100));
  tick(silence, seconds(105), seconds(1000), true);
  EXPECT_EQ(silence.lasted(seconds(1003)), seconds(3));
}

TEST(Silence, OfWhatWasNeverMetLastsForEver) {
  Silence silence(seconds(0));
  tick(silence, seconds(0), seconds(40), false);
  EXPECT_EQ(silence.lasted(seconds(40)), milliseconds::max());
}

TEST(Silence, BeginsWithTheBreak) {
  Silence silence(seconds(0));
  tick(silence, seconds(5), seconds(100), true);
  tick(silence, seconds(105), seconds(200), false);
  EXPECT_EQ(silence.lasted(seconds(200)), seconds(100));
  tick(silence, seconds(205), seconds(205), true);
  EXPECT_EQ(silence.lasted(seconds(205)), seconds(0));
}

TEST(Silence, CountsSleepAndTrustsNoConnectionJustAfterIt) {
  Silence silence(seconds(0));
  tick(silence, seconds(5), seconds(100), true);
  // The machine slept for an hour. For a while the connection seems to work.
  tick(silence, seconds(3700), seconds(3715), true);
  EXPECT_EQ(silence.lasted(seconds(3715)), seconds(3615));
  tick(silence, seconds(3720), seconds(3740), false);
  EXPECT_EQ(silence.lasted(seconds(3740)), seconds(3640));
}

TEST(Silence, EndsWhereTheConnectionOutlivesSleep) {
  Silence silence(seconds(0));
  tick(silence, seconds(5), seconds(100), true);
  tick(silence, seconds(160), seconds(190), true);
  EXPECT_EQ(silence.lasted(seconds(191)), seconds(1));
}

}  // namespace
}  // namespace lockstep::jobs::on_hosts
