// A fan without hosts: the test makes the answers of the seed and the takers.
#include "project/fan_course.h"

#include <gtest/gtest.h>

namespace lockstep::project {
namespace {

using Next = FanCourse::Next;

TEST(FanCourse, TakersAreStartedOnceWhenTheSeedListens) {
  FanCourse fan(2);
  EXPECT_TRUE(fan.waits());
  EXPECT_EQ(fan.on_answer(FanCourse::kSeed, peer::Connected{}), Next::wait);
  EXPECT_EQ(fan.on_answer(FanCourse::kSeed, peer::Listening{{"10.0.0.1"}, 5}), Next::start_takers);
  EXPECT_EQ(fan.on_answer(FanCourse::kSeed, peer::Listening{{"10.0.0.1"}, 5}), Next::wait);
}

TEST(FanCourse, WhileItOpensATakerIsAwaitedUntilItIsConnected) {
  FanCourse fan(2);
  EXPECT_EQ(fan.on_answer(1, peer::Connected{}), Next::tell);
  EXPECT_TRUE(fan.waits());
  EXPECT_EQ(fan.on_answer(2, peer::Connected{}), Next::tell);
  EXPECT_FALSE(fan.waits());
  EXPECT_TRUE(fan.any_connected());
  fan.opened();
  EXPECT_TRUE(fan.waits()) << "now until it is over";
  EXPECT_EQ(fan.on_answer(1, peer::Progress{100}), Next::tell);
  EXPECT_EQ(fan.on_answer(2, peer::Done{3, 50, 0}), Next::tell);
  EXPECT_EQ(fan.bytes(), 150U);
  EXPECT_EQ(fan.on_answer(1, peer::Done{3, 200, 0}), Next::tell);
  EXPECT_FALSE(fan.waits());
  EXPECT_EQ(fan.bytes(), 250U);
  EXPECT_EQ(fan.on_answer(1, peer::Progress{9}), Next::wait) << "a word after the end";
  EXPECT_EQ(fan.bytes(), 250U);
}

TEST(FanCourse, FilesThatNeverCameAreTrouble) {
  FanCourse fan(1);
  fan.on_answer(1, peer::Done{3, 50, 2});
  EXPECT_TRUE(fan.takers()[0].over);
  EXPECT_EQ(fan.takers()[0].trouble, "2 of the files never arrived there");
}

TEST(FanCourse, ATakerFailsAlone) {
  FanCourse fan(2);
  EXPECT_EQ(fan.on_answer(1, peer::Trouble{"no space"}), Next::wait);
  EXPECT_EQ(fan.takers()[0].trouble, "no space");
  EXPECT_FALSE(fan.takers()[1].over);
  EXPECT_TRUE(fan.waits());
  EXPECT_FALSE(fan.any_connected());
}

TEST(FanCourse, ASeedTakesAlongThoseThatHaveNotReachedIt) {
  FanCourse fan(2);
  fan.on_answer(1, peer::Connected{});
  fan.on_failed(FanCourse::kSeed, "its lockstep exited with code 1");
  EXPECT_FALSE(fan.takers()[0].over) << "it sees that itself, and may have all files";
  EXPECT_EQ(fan.takers()[1].trouble, "its lockstep exited with code 1");
  EXPECT_FALSE(fan.waits());
}

TEST(FanCourse, WhoeverIsLateGetsTheFilesFromTheClient) {
  FanCourse fan(2);
  fan.on_answer(1, peer::Connected{});
  fan.on_late();
  EXPECT_FALSE(fan.takers()[0].over);
  EXPECT_EQ(fan.takers()[1].trouble, "the two hosts did not connect in time");
  fan.on_failed(2, "and then it failed");
  EXPECT_EQ(fan.takers()[1].trouble, "the two hosts did not connect in time");
}

}  // namespace
}  // namespace lockstep::project
