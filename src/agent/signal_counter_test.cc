#include "agent/signal_counter.h"

#include <gtest/gtest.h>

#include <signal.h>

namespace lockstep::agent {
namespace {
using std::chrono::milliseconds;

const SignalCounter::TimePoint kStart{std::chrono::hours(1)};

TEST(SignalCounter, ASignalToAllProcessesCountsOnce) {
  SignalCounter counter;
  EXPECT_TRUE(counter.is_news(SIGTERM, false, kStart));
  EXPECT_FALSE(counter.is_news(SIGTERM, true, kStart + milliseconds(1)));
  EXPECT_TRUE(counter.is_news(SIGTERM, true, kStart + milliseconds(2))) << "the second one to all";
  EXPECT_FALSE(counter.is_news(SIGTERM, false, kStart + milliseconds(3)));
  EXPECT_TRUE(counter.is_news(SIGINT, false, kStart + milliseconds(3))) << "another signal";
}

TEST(SignalCounter, EachOneOnTheSameWayIsNews) {
  SignalCounter counter;
  EXPECT_TRUE(counter.is_news(SIGUSR1, true, kStart));
  EXPECT_TRUE(counter.is_news(SIGUSR1, true, kStart));
}

TEST(SignalCounter, OneThatComesLaterByTheOtherWayIsNews) {
  SignalCounter counter;
  EXPECT_TRUE(counter.is_news(SIGTERM, false, kStart));
  EXPECT_TRUE(counter.is_news(SIGTERM, true, kStart + milliseconds(500)));
}

using Meaning = StopRequests::Meaning;

TEST(StopRequests, TwoThatComeTogetherAreOne) {
  StopRequests requests;
  EXPECT_EQ(requests.on_request(kStart), Meaning::stop);
  EXPECT_EQ(requests.on_request(kStart + milliseconds(299)), Meaning::same);
}

TEST(StopRequests, TheSecondOneIsUrgentFrom300MillisecondsOn) {
  StopRequests requests;
  EXPECT_EQ(requests.on_request(kStart), Meaning::stop);
  EXPECT_EQ(requests.on_request(kStart + milliseconds(300)), Meaning::urgent);
  EXPECT_EQ(requests.on_request(kStart + milliseconds(301)), Meaning::urgent);
}

TEST(StopRequests, AThirdOneIsUrgentAtOnce) {
  StopRequests requests;
  EXPECT_EQ(requests.on_request(kStart), Meaning::stop);
  EXPECT_EQ(requests.on_request(kStart), Meaning::same);
  EXPECT_EQ(requests.on_request(kStart), Meaning::urgent);
}

}  // namespace
}  // namespace lockstep::agent
