#include "cloud/bounded_web.h"

#include "base/error_testing.h"
#include "cloud/scripted_web_testing.h"

#include <gtest/gtest.h>

namespace lockstep::cloud {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::ScriptedWeb;

Question question(milliseconds timeout) {
  Question made;
  made.timeout = timeout;
  return made;
}

TEST(BoundedWeb, AQuestionWaitsNoLongerThanThereIsTime) {
  ScriptedWeb web([](const Question&) { return testing::answered(200, "yes"); });
  BoundedWeb bounded(web, io::Clock::now() + seconds(5));
  ASSERT_TRUE(bounded.ask(question(seconds(60))).answer);
  ASSERT_TRUE(bounded.ask(question(milliseconds(7))).answer);
  ASSERT_EQ(web.asked.size(), 2U);
  EXPECT_LE(web.asked[0].timeout, seconds(5));
  EXPECT_GT(web.asked[0].timeout, seconds(1));
  EXPECT_EQ(web.asked[1].timeout, milliseconds(7));
}

TEST(BoundedWeb, AfterItsTimeNothingIsAskedNorWaitedFor) {
  ScriptedWeb web([](const Question&) { return testing::answered(200, "yes"); });
  BoundedWeb bounded(web, io::Clock::now() - milliseconds(1));
  const Reply reply = bounded.ask(question(seconds(1)));
  ASSERT_FALSE(reply.answer);
  EXPECT_EQ(code_of(reply.answer), Errc::timeout);
  EXPECT_FALSE(reply.sent);
  EXPECT_FALSE(bounded.pause(milliseconds(1)));
  EXPECT_TRUE(bounded.pause(milliseconds(0)));  // only checks for a stop by the user
  EXPECT_TRUE(web.asked.empty());
}

TEST(BoundedWeb, WhatIsAskedAtOnceIsBoundedToo) {
  ScriptedWeb web([](const Question&) { return testing::answered(200, "yes"); });
  BoundedWeb bounded(web, io::Clock::now() + seconds(5));
  bool paused = true;
  bounded.at_once({[&](Web& own) {
    (void)own.ask(question(hours(1)));
    paused = own.pause(seconds(6)).has_value();
  }});
  ASSERT_EQ(web.asked.size(), 1U);
  EXPECT_LE(web.asked[0].timeout, seconds(5));
  EXPECT_FALSE(paused);
  EXPECT_TRUE(web.pauses.empty());
}

}  // namespace
}  // namespace lockstep::cloud
