#include "status/goodput.h"

#include <gtest/gtest.h>

namespace lockstep::status {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr Goodput::TimePoint at(int ms) {
  return Goodput::TimePoint{} + milliseconds(ms);
}

TEST(GoodputOfAJob, AddsUpThePhases) {
  Goodput goodput(at(0));
  goodput.enter(Phase::start, at(2000));
  goodput.look(Phase::start, 0, at(3000));
  for (int second = 4; second <= 83; ++second)
    goodput.look(Phase::training, 0.25, at(1000 * second));
  goodput.look(Phase::waiting, 0, at(93'000));
  goodput.enter(Phase::stopping, at(93'500));
  goodput.enter(Phase::down, at(95'500));
  goodput.enter(Phase::rendezvous, at(100'000));
  EXPECT_EQ(goodput.of(Phase::rendezvous), seconds(2));
  EXPECT_EQ(goodput.of(Phase::start), seconds(1));
  EXPECT_EQ(goodput.of(Phase::training), seconds(60));
  EXPECT_EQ(goodput.of(Phase::input), seconds(20));
  EXPECT_EQ(goodput.of(Phase::waiting), milliseconds(10'500));
  EXPECT_EQ(goodput.of(Phase::stopping), seconds(2));
  EXPECT_EQ(goodput.of(Phase::down), milliseconds(4500));
  EXPECT_EQ(goodput.total(), seconds(100));
  EXPECT_DOUBLE_EQ(goodput.share(), 0.6);
  EXPECT_EQ(goodput_words(goodput),
            "goodput 60 % (training 1 min 0 s, input 20.0 s, waiting 10.5 s, down 4.5 s, "
            "rendezvous 2.0 s, stopping 2.0 s, start 1.0 s)");
}

TEST(GoodputOfAJob, RepeatedStepsAreNotTraining) {
  Goodput goodput(at(0), Phase::start);
  EXPECT_FALSE(goodput.knows(Phase::redone)) << "without step lines nothing is said about it";
  goodput.look(Phase::training, 0, at(60'000));
  goodput.know_steps(true);
  EXPECT_TRUE(goodput.knows(Phase::redone));
  goodput.look(Phase::redone, 0.5, at(80'000));
  EXPECT_EQ(goodput.of(Phase::redone), seconds(10));
  EXPECT_EQ(goodput.of(Phase::input), seconds(10));
  EXPECT_EQ(goodput.total(), seconds(80)) << "the phases add up";
  EXPECT_DOUBLE_EQ(goodput.share(), 0.75);
  EXPECT_EQ(goodput_words(goodput),
            "goodput 75 % (training 1 min 0 s, redone ~10.0 s, input 10.0 s)");
  goodput.know_steps(false);
  EXPECT_EQ(goodput_words(goodput),
            "goodput 75 % (training 1 min 0 s, redone 10.0 s, input 10.0 s)");
  goodput.know_steps({});
  EXPECT_TRUE(goodput.knows(Phase::redone)) << "no sum vanishes";
  EXPECT_FALSE(goodput.guesses(Phase::redone)) << "the pattern of the user has found it";
}

TEST(GoodputOfAJob, ALookDuringAStopChangesNothing) {
  Goodput goodput(at(0), Phase::stopping);
  goodput.look(Phase::training, 0, at(1000));
  goodput.enter(Phase::down, at(2000));
  goodput.look(Phase::training, 0, at(3000));
  goodput.enter(Phase::down, at(4000));
  EXPECT_EQ(goodput.of(Phase::training), seconds(0));
  EXPECT_EQ(goodput.of(Phase::stopping), seconds(2));
  EXPECT_EQ(goodput.of(Phase::down), seconds(2));
  EXPECT_EQ(goodput_words(goodput), "");
}

TEST(GoodputOfAJob, AnObserverNeverSeesASumFall) {
  Goodput goodput(at(0));
  EXPECT_EQ(goodput.at(at(4000)).of(Phase::rendezvous), seconds(4));
  EXPECT_EQ(goodput.of(Phase::rendezvous), seconds(0)) << "an observer changes nothing";
  goodput.enter(Phase::start, at(5000));
  goodput.look(Phase::training, 0, at(6000));
  EXPECT_EQ(goodput.at(at(6900)).of(Phase::training), seconds(1))
      << "the next look may find that the ranks have waited";
  goodput.look(Phase::waiting, 0, at(7000));
  EXPECT_EQ(goodput.of(Phase::training), seconds(1));
  goodput.enter(Phase::stopping, at(8000));
  EXPECT_EQ(goodput.at(at(38'000)).of(Phase::stopping), seconds(30));
}

TEST(GoodputOfAJob, BadInputStaysBounded) {
  Goodput goodput(at(5000), Phase::start);
  EXPECT_EQ(goodput.share(), 0);
  goodput.look(Phase::training, 7, at(6000));
  goodput.look(Phase::training, -3, at(7000));
  goodput.look(Phase::training, 0, at(1000));  // a clock that goes back
  goodput.enter(Phase::down, at(2000));
  EXPECT_EQ(goodput.of(Phase::input), seconds(1));
  EXPECT_EQ(goodput.of(Phase::training), seconds(1));
  EXPECT_EQ(goodput.total(), seconds(2));
  EXPECT_EQ(goodput_words(goodput), "") << "a brief job";
}

}  // namespace
}  // namespace lockstep::status
