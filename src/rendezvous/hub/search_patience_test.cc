// The patience of a search for a hub.
#include "rendezvous/hub/search_patience.h"

#include <gtest/gtest.h>

namespace lockstep::rendezvous::hub {
namespace {
using namespace std::chrono_literals;

TEST(SearchPatience, EndsInTime) {
  SearchPatience patience;
  const Time now{1000s};
  EXPECT_FALSE(patience.is_over(now + 100s));
  patience.begin(30s, now);
  patience.plan(now + 10s);
  EXPECT_FALSE(patience.is_over(now + 3s));
  EXPECT_FALSE(patience.is_over(now + 29'900ms));
  EXPECT_TRUE(patience.is_over(now + 30s));
  patience.begin_unbounded();
  EXPECT_FALSE(patience.is_over(now + 100s));
}

TEST(SearchPatience, TimeInWhichTheProcessWasStoppedDoesNotCount) {
  SearchPatience patience;
  const Time now{1000s};
  patience.begin(30s, now);
  patience.plan(now + 2s);
  EXPECT_FALSE(patience.is_over(now + 62s));  // one minute late
  patience.plan(now + 64s);
  EXPECT_FALSE(patience.is_over(now + 64s + 900ms));
  EXPECT_FALSE(patience.is_over(now + 89s));
  EXPECT_TRUE(patience.is_over(now + 90s));
}

}  // namespace
}  // namespace lockstep::rendezvous::hub
