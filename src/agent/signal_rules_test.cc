#include "agent/signal_rules.h"

#include <gtest/gtest.h>

#include <signal.h>

namespace lockstep::agent {
namespace {

using namespace std::chrono_literals;
using Meaning = SignalRules::Meaning;

const StopRequests::TimePoint kStart{};

Meaning meaning(SignalRules rules, int signal) {
  return rules.meaning(signal, false, kStart);
}

TEST(SignalRules, WhatAgentsHearAllTheTimeEndsNothing) {
  const SignalRules rules({SIGTERM, SIGINT}, {SIGUSR1});
  EXPECT_EQ(meaning(rules, SIGCHLD), Meaning::reap);
  EXPECT_EQ(meaning(rules, SIGWINCH), Meaning::resize);
  EXPECT_EQ(meaning(rules, SIGPIPE), Meaning::nothing);
  EXPECT_EQ(meaning(rules, SIGURG), Meaning::nothing);
  EXPECT_EQ(meaning(rules, SIGXFSZ), Meaning::nothing);
}

TEST(SignalRules, ForwardedUnlessListed) {
  EXPECT_EQ(meaning(SignalRules({SIGTERM}, {SIGUSR1}), SIGUSR1), Meaning::forward);
  EXPECT_EQ(meaning(SignalRules({SIGTERM, SIGUSR1}, {SIGUSR1}), SIGUSR1), Meaning::stop);
  EXPECT_EQ(meaning(SignalRules({SIGTERM}, {SIGUSR1}), SIGUSR2), Meaning::stop);
}

TEST(SignalRules, AnUnlistedSignalStopsTheJobToo) {
  SignalRules rules({SIGTERM}, {});
  EXPECT_EQ(rules.meaning(SIGQUIT, false, kStart), Meaning::stop);
  EXPECT_FALSE(rules.is_listed(SIGQUIT));
  EXPECT_TRUE(rules.is_listed(SIGTERM));
}

TEST(SignalRules, NohupHolds) {
  SignalRules rules({SIGHUP}, {});
  EXPECT_EQ(rules.meaning(SIGHUP, true, kStart), Meaning::nothing);
  EXPECT_EQ(rules.meaning(SIGHUP, false, kStart), Meaning::stop);
}

TEST(SignalRules, TheSecondRequestIsUrgentUnlessItIsTheFirstOneAgain) {
  SignalRules rules({SIGTERM, SIGINT}, {});
  EXPECT_EQ(rules.meaning(SIGTERM, false, kStart), Meaning::stop);
  EXPECT_EQ(rules.meaning(SIGINT, false, kStart + 100ms), Meaning::nothing);
  EXPECT_EQ(rules.meaning(SIGTERM, false, kStart + 400ms), Meaning::urgent);

  SignalRules others({SIGTERM, SIGHUP}, {});
  EXPECT_EQ(others.meaning(SIGHUP, false, kStart), Meaning::stop);
  EXPECT_EQ(others.meaning(SIGHUP, false, kStart + 1s), Meaning::stop) << "only TERM and INT count";
}

}  // namespace
}  // namespace lockstep::agent
