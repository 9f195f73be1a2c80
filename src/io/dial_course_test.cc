#include "io/dial_course.h"

#include <gtest/gtest.h>

#include <errno.h>

#include <string>
#include <vector>

namespace lockstep::io {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using What = DialCourse::Step::What;

Error refused(const std::string& text = "refused") {
  return {Errc::unavailable, text, {}, ECONNREFUSED};
}
Error other(const std::string& text) {
  return {Errc::timeout, text, {}, ETIMEDOUT};
}

// A course with a hand-turned clock.
struct Trip {
  explicit Trip(const DialRules& rules, const std::string& host = "h")
      : course(rules, host, TimePoint{}) {}

  DialCourse::Step round(std::vector<std::string> addresses) {
    allowed = course.begin_round(now);
    return course.found(std::move(addresses), now);
  }
  DialCourse::Step fails(Error error, bool answered = false) {
    return course.failed(std::move(error), answered, now);
  }
  std::string said() const { return course.error()->message; }

  DialCourse course;
  TimePoint now{};
  Duration allowed{};
};

DialRules rules(milliseconds patience = seconds(10)) {
  DialRules rules;
  rules.patience = patience;
  rules.most_for_address = seconds(8);
  rules.first_pause = milliseconds(20);
  rules.longest_pause = milliseconds(80);
  return rules;
}

TEST(DialCourse, TriesEachAddressThenPausesLongerAndLonger) {
  Trip trip(rules());
  for (const int pause : {20, 30, 45, 67, 80, 80}) {
    auto step = trip.round({"10.0.0.1", "10.0.0.2"});
    EXPECT_EQ(step.what, What::connect);
    EXPECT_EQ(trip.course.address(), 0U);
    step = trip.fails(refused("a"));
    EXPECT_EQ(step.what, What::connect);
    EXPECT_EQ(trip.course.address(), 1U);
    step = trip.fails(refused("b"));
    EXPECT_EQ(step.what, What::pause);
    EXPECT_EQ(step.time, milliseconds(pause));
    EXPECT_EQ(trip.said(), "b (tried 10.0.0.2)");
    trip.now += step.time;
  }
}

TEST(DialCourse, AnAddressThatTheUserGaveIsNotNamedAgain) {
  Trip trip(rules(), "10.0.0.1");
  trip.round({"10.0.0.1"});
  trip.fails(refused());
  EXPECT_EQ(trip.said(), "refused");
}

TEST(DialCourse, AnAddressHasTheTimeLeftWithinItsLimits) {
  Trip trip(rules());
  EXPECT_EQ(trip.round({"a"}).time, seconds(8));
  trip.now += seconds(7);
  trip.fails(refused());
  EXPECT_EQ(trip.round({"a"}).time, seconds(3));
  EXPECT_EQ(trip.allowed, seconds(3));
  DialRules patient = rules();
  patient.least_for_address = milliseconds(2500);
  Trip late(patient);
  late.now += milliseconds(9900);
  EXPECT_EQ(late.round({"a"}).time, milliseconds(2500));
  late.now += seconds(5);
  late.fails(refused());
  late.course.begin_round(late.now);
  EXPECT_EQ(late.course.begin_round(late.now), Duration(0));  // never negative
}

TEST(DialCourse, GivesUpWhenAWholePauseDoesNotFit) {
  Trip trip(rules(milliseconds(100)));
  trip.round({"a"});
  trip.now += milliseconds(79);
  EXPECT_EQ(trip.fails(refused()).time, milliseconds(20));
  trip.now += milliseconds(20);
  trip.round({"a"});
  EXPECT_EQ(trip.fails(refused()).what, What::give_up);
}

TEST(DialCourse, OrShortensThePauseForALastRound) {
  DialRules last = rules(milliseconds(100));
  last.last_round = milliseconds(20);
  Trip trip(last);
  trip.round({"a"});
  trip.now += milliseconds(75);
  const auto step = trip.fails(refused());
  EXPECT_EQ(step.what, What::pause);
  EXPECT_EQ(step.time, milliseconds(5));
  trip.now += step.time;
  trip.round({"a"});
  EXPECT_EQ(trip.fails(refused()).what, What::give_up);
}

TEST(DialCourse, GivesUpEarlierWhereEveryAttemptIsRefused) {
  DialRules early = rules();
  early.refused_patience = seconds(3);
  Trip trip(early);
  trip.round({"a"});
  trip.fails(refused());
  trip.now += seconds(2);
  trip.round({"a"});
  EXPECT_EQ(trip.fails(other("silence")).what, What::pause);  // so the series starts anew
  trip.now += seconds(2);
  trip.round({"a"});
  EXPECT_EQ(trip.fails(refused()).what, What::pause);
  trip.now += milliseconds(2900);
  trip.round({"a"});
  EXPECT_EQ(trip.fails(refused()).what, What::pause);
  trip.now += milliseconds(60);
  trip.round({"a"});
  EXPECT_EQ(trip.fails(refused()).what, What::give_up);
}

TEST(DialCourse, ALastRoundIsLeftBeforeThePatienceWithRefusalsEnds) {
  DialRules early = rules();
  early.refused_patience = milliseconds(100);
  early.last_round = milliseconds(20);
  Trip trip(early);
  trip.round({"a"});
  trip.fails(refused());
  trip.now += milliseconds(70);
  trip.round({"a"});
  EXPECT_EQ(trip.fails(refused()).time, milliseconds(10));
  trip.now += milliseconds(10);
  trip.round({"a"});
  EXPECT_EQ(trip.fails(refused()).what, What::give_up);
}

TEST(DialCourse, OneRoundSharesTheTimeAndNamesAll) {
  DialRules once;
  once.patience = seconds(6);
  once.once = true;
  Trip trip(once);
  EXPECT_EQ(trip.round({"a", "b", "c"}).time, seconds(2));
  trip.now += seconds(2);
  EXPECT_EQ(trip.fails(other("x")).time, seconds(2));
  EXPECT_EQ(trip.fails(refused("y")).time, seconds(4));  // the rest is for the last one
  EXPECT_EQ(trip.fails(refused("z")).what, What::give_up);
  EXPECT_EQ(trip.said(), "x (tried a); y (tried b); z (tried c)");
  EXPECT_EQ(trip.course.error()->sys, ETIMEDOUT);
}

TEST(DialCourse, ALookUpThatFailsEndsOneRoundAndPausesOthers) {
  DialRules once;
  once.patience = seconds(6);
  once.once = true;
  Trip one(once);
  one.course.begin_round(one.now);
  EXPECT_EQ(one.course.not_found({Errc::not_found, "unknown", {}, 0}, one.now).what, What::give_up);
  EXPECT_EQ(one.said(), "unknown");
  Trip many(rules());
  many.course.begin_round(many.now);
  EXPECT_EQ(many.course.not_found({Errc::not_found, "unknown", {}, 0}, many.now).what, What::pause);
}

TEST(DialCourse, ALookUpWithoutTimeSaysLessThanWhatWasMetBefore) {
  Trip trip(rules());
  EXPECT_EQ(trip.course.begin_round(trip.now), seconds(10));
  trip.now += seconds(10);
  EXPECT_EQ(trip.course.look_up_expired(trip.now).what, What::give_up);
  EXPECT_EQ(trip.said(), "the look-up of 'h' does not end");
  Trip before(rules());
  before.round({"a"});
  before.now += milliseconds(9200);
  before.fails(refused());
  before.now += milliseconds(20);
  before.course.begin_round(before.now);
  before.now += milliseconds(780);
  EXPECT_EQ(before.course.look_up_expired(before.now).what, What::give_up);
  EXPECT_EQ(before.said(), "refused (tried a)");
}

// The answer of another job's hub says more than the second address of "localhost", where no server
// listens.
TEST(DialCourse, ALastAttemptWithoutTimeSaysLessThanWhatWasMetBefore) {
  DialRules brief = rules(milliseconds(150));
  brief.last_round = milliseconds(20);
  Trip trip(brief);
  trip.round({"h"});
  trip.now += milliseconds(130 - 20);
  EXPECT_EQ(trip.fails(refused("closed during the greeting")).what, What::pause);
  trip.now += milliseconds(20);
  EXPECT_EQ(trip.round({"h"}).time, milliseconds(20));
  trip.now += milliseconds(20);
  EXPECT_EQ(trip.fails(other("no answer")).what, What::give_up);
  EXPECT_EQ(trip.said(), "closed during the greeting");
}

TEST(DialCourse, WhatAnAddressAnswersOutweighsRefusalsOfOthers) {
  Trip trip(rules());
  trip.round({"a", "b"});
  trip.fails({Errc::invalid_input, "another job", {}, 0}, true);
  trip.fails(refused());
  EXPECT_EQ(trip.said(), "another job (tried a)");
  trip.round({"a", "b"});  // the hub has just gone
  trip.fails(refused());
  trip.fails(refused());
  EXPECT_EQ(trip.said(), "another job (tried a)");
  trip.round({"a", "b"});
  trip.fails(refused("gone"));
  EXPECT_EQ(trip.said(), "gone (tried a)");
}

}  // namespace
}  // namespace lockstep::io
