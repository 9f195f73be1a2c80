// Accepts everything an honest host sends, and refuses each lie.
#include "link/host_rules.h"

#include <gtest/gtest.h>

namespace lockstep::link {
namespace {

using Verdict = HostRules::Verdict;

class HostRulesTest : public ::testing::Test {
 protected:
  HostRulesTest() { EXPECT_EQ(rules_.judge(Hello{}), Verdict::take); }

  void start(std::uint32_t channel, bool result = false) {
    rules_.sent(Start{.channel = channel, .result = result});
    EXPECT_EQ(rules_.judge(Started{channel, 10}), Verdict::take);
  }
  static Data data(std::uint32_t channel, std::size_t size, Stream stream = Stream::out) {
    return {channel, stream, std::string(size, 'x')};
  }

  HostRules rules_;
};

TEST_F(HostRulesTest, ACommandFromStartToExit) {
  start(1, true);
  rules_.sent(data(1, 100, Stream::in));
  for (const Stream stream : {Stream::out, Stream::err, Stream::result}) {
    EXPECT_EQ(rules_.judge(data(1, kMaxData, stream)), Verdict::take);
    EXPECT_EQ(rules_.judge(Eof{1, stream}), Verdict::take);
  }
  EXPECT_EQ(rules_.judge(Credit{1, Stream::in, 60}), Verdict::take);
  EXPECT_EQ(rules_.judge(Exit{1, 0, 0}), Verdict::take);
  EXPECT_EQ(rules_.judge(Credit{1, Stream::in, 40}), Verdict::drop) << "as an honest host may";
  start(1);
  EXPECT_EQ(rules_.judge(Exit{1, 0, 0}), Verdict::take);
  rules_.sent(Start{.channel = 2});
  EXPECT_EQ(rules_.judge(Refused{2, 127, "not found"}), Verdict::take);
}

TEST_F(HostRulesTest, OutputHasTheRoomThatItWasGiven) {
  start(1);
  for (std::size_t sent = 0; sent < kWindow; sent += kMaxData)
    ASSERT_EQ(rules_.judge(data(1, kMaxData)), Verdict::take);
  EXPECT_EQ(rules_.judge(data(1, 1)), Verdict::refuse);
  EXPECT_EQ(rules_.why(), "more output than the credit allows");
  EXPECT_EQ(rules_.judge(data(1, 1, Stream::err)), Verdict::take) << "each stream has its own";
  rules_.sent(Credit{1, Stream::out, 10});
  EXPECT_EQ(rules_.judge(data(1, 10)), Verdict::take);
  EXPECT_EQ(rules_.judge(data(1, 1)), Verdict::refuse);
}

TEST_F(HostRulesTest, OnlyChannelsThatWereAskedForSpeak) {
  start(1);
  for (const Frame& frame :
       {Frame(Exit{2, 0, 0}), Frame(Started{2, 1}), Frame(Refused{2, 1, ""}), Frame(data(2, 1)),
        Frame(Eof{2, Stream::out}), Frame(Started{1, 1}), Frame(Refused{1, 1, ""})})
    EXPECT_EQ(rules_.judge(frame), Verdict::refuse) << frame_name(frame);
  EXPECT_EQ(rules_.judge(Exit{1, 0, 0}), Verdict::take);
  EXPECT_EQ(rules_.judge(Exit{1, 0, 0}), Verdict::refuse) << "twice";
  EXPECT_EQ(rules_.judge(data(1, 1)), Verdict::refuse) << "after its end";
}

TEST_F(HostRulesTest, WhatDidNotStartHasNoOutputAndNoEnd) {
  rules_.sent(Start{.channel = 1});
  EXPECT_EQ(rules_.judge(data(1, 1)), Verdict::refuse);
  EXPECT_EQ(rules_.judge(Exit{1, 0, 0}), Verdict::refuse);
}

TEST_F(HostRulesTest, WhatNoHonestHostSends) {
  start(1);
  for (const Frame& frame : {Frame(Hello{}), Frame(Start{.channel = 7}), Frame(Signal{1, 9}),
                             Frame(Pong{1}), Frame(data(1, 0)), Frame(data(1, 1, Stream::in)),
                             Frame(data(1, 1, Stream::result)), Frame(Eof{1, Stream::in}),
                             Frame(Credit{1, Stream::in, 1}), Frame(Credit{1, Stream::out, 1})})
    EXPECT_EQ(rules_.judge(frame), Verdict::refuse) << frame_name(frame);
  EXPECT_EQ(HostRules().judge(Started{1, 1}), Verdict::refuse) << "before its greeting";
}

TEST_F(HostRulesTest, EachPingHasOneAnswer) {
  rules_.sent(Ping{1});
  EXPECT_EQ(rules_.judge(Pong{1}), Verdict::take);
  EXPECT_EQ(rules_.judge(Pong{1}), Verdict::refuse);
  EXPECT_EQ(rules_.judge(Ping{1}), Verdict::drop);
}

}  // namespace
}  // namespace lockstep::link
