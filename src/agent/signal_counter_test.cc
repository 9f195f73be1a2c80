#include "agent/signal_counter.h"

#include <gtest/gtest.h>

#include <signal.h>

namespace lockstep::agent {
namespace {

TEST(SignalCounter, ASignalToAllProcessesCountsOnce) {
  SignalCounter counter;
  EXPECT_TRUE(counter.is_news(SIGTERM, false));
  EXPECT_FALSE(counter.is_news(SIGTERM, true));
  EXPECT_TRUE(counter.is_news(SIGTERM, true)) << "the second TERM, passed on first this time";
  EXPECT_FALSE(counter.is_news(SIGTERM, false));
  EXPECT_TRUE(counter.is_news(SIGINT, false)) << "another signal";
}

TEST(SignalCounter, EachOneOnTheSameWayIsNews) {
  SignalCounter counter;
  EXPECT_TRUE(counter.is_news(SIGUSR1, true));
  EXPECT_TRUE(counter.is_news(SIGUSR1, true));
}

}  // namespace
}  // namespace lockstep::agent
