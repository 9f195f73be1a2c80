#include "agent/conclusion.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace lockstep::agent {
namespace {

using namespace std::chrono_literals;
using Act = Conclusion::Act;
using Event = Conclusion::Event;
using Stage = Conclusion::Stage;
using Actions = Conclusion::Actions;

constexpr Conclusion::Limits kLimits{.shutdown = 30s, .leave = 30s};
constexpr Conclusion::Facts kAlone{.leftovers = 0, .succeeded = true};
constexpr Conclusion::Facts kAmongOthers{.succeeded = true, .in_rendezvous = true};
constexpr Conclusion::Facts kFailedAmongOthers{.exchanges_reports = true, .in_rendezvous = true};

Conclusion::Facts with_leftovers(Conclusion::Facts facts) {
  facts.leftovers = 2;
  return facts;
}

// A driver with a hand-turned clock. Like the real driver it has one timer.
class Driver {
 public:
  Driver(Conclusion::Limits limits, const Conclusion::Facts& facts) : conclusion_(limits) {
    take(conclusion_.begin(facts));
  }

  void on(Event event) {
    const Stage before = conclusion_.stage();
    const Actions actions = conclusion_.on(event);
    if (conclusion_.stage() != before) armed_ = false;
    take(actions);
  }

  // Lets time pass; the timer fires when it is due.
  void pass(Conclusion::Duration time) {
    const auto end = now_ + time;
    while (armed_ && due_ <= end) {
      now_ = due_;
      armed_ = false;
      on(Event::time_over);
    }
    now_ = end;
  }

  Stage stage() const { return conclusion_.stage(); }
  bool waits() const { return armed_; }
  std::vector<Act> taken() { return std::exchange(taken_, {}); }

 private:
  void take(const Actions& actions) {
    for (const auto& action : actions) {
      if (action.act == Act::arm) {
        armed_ = true;
        due_ = now_ + action.time;
      } else {
        taken_.push_back(action.act);
      }
    }
  }

  Conclusion conclusion_;
  Conclusion::Duration now_{0};
  Conclusion::Duration due_{0};
  bool armed_ = false;
  std::vector<Act> taken_;
};

using Acts = std::vector<Act>;

TEST(Conclusion, ANodeAloneTellsAndCloses) {
  Conclusion conclusion(kLimits);
  EXPECT_EQ(conclusion.stage(), Stage::not_begun);
  EXPECT_EQ(conclusion.begin(kAlone),
            (Actions{{Act::tell_outcome}, {Act::close}, {Act::arm, 30s}, {Act::watch_console}}));
  EXPECT_EQ(conclusion.stage(), Stage::draining_console);
  EXPECT_EQ(conclusion.on(Event::console_drained), (Actions{{Act::stop}}));
  EXPECT_EQ(conclusion.stage(), Stage::done);
}

TEST(Conclusion, LeftoversOfAGoodJobHaveTwoSeconds) {
  Driver driver(kLimits, with_leftovers(kAlone));
  EXPECT_EQ(driver.taken(), (Acts{Act::terminate_leftovers, Act::watch_leftovers}));
  driver.pass(1999ms);
  EXPECT_EQ(driver.stage(), Stage::leftover_grace);
  driver.pass(1ms);
  EXPECT_EQ(driver.taken(), (Acts{Act::kill_leftovers}));
  driver.on(Event::leftovers_gone);
  EXPECT_EQ(driver.taken(),
            (Acts{Act::say_leftovers, Act::tell_outcome, Act::close, Act::watch_console}));
}

TEST(Conclusion, TheGraceOfLeftoversIsAtMostThatOfWorkers) {
  Driver driver({.shutdown = 1s, .leave = 30s}, with_leftovers(kAlone));
  driver.pass(1s);
  EXPECT_EQ(driver.stage(), Stage::killing_leftovers);
}

TEST(Conclusion, LeftoversThatEndedByThemselvesAreSweptStill) {
  Driver driver(kLimits, with_leftovers(kAlone));
  driver.taken();
  driver.on(Event::leftovers_gone);
  EXPECT_EQ(driver.taken(), (Acts{Act::kill_leftovers}));
}

TEST(Conclusion, LeftoversOfAFailedJobAreKilledAtOnce) {
  Conclusion conclusion(kLimits);
  EXPECT_EQ(conclusion.begin(with_leftovers(kFailedAmongOthers)),
            (Actions{{Act::kill_leftovers, Conclusion::kKillLimit}}));
  EXPECT_EQ(conclusion.on(Event::leftovers_gone),
            (Actions{{Act::say_leftovers},
                     {Act::exchange_reports, Conclusion::kReportTime},
                     {Act::arm, 2 * Conclusion::kReportTime}}));
}

TEST(Conclusion, AHurryDoesNotLeaveLeftoversBehind) {
  Driver driver(kLimits, with_leftovers(kFailedAmongOthers));
  driver.taken();
  driver.on(Event::hurry);
  EXPECT_EQ(driver.stage(), Stage::killing_leftovers);
  EXPECT_TRUE(driver.taken().empty());
  driver.on(Event::leftovers_gone);  // the hurry was meant for that stage alone
  EXPECT_EQ(driver.stage(), Stage::exchanging_reports);
}

TEST(Conclusion, WithoutPatienceTheKernelHasNoTimeToEndLeftovers) {
  Conclusion conclusion(kLimits);
  conclusion.begin(with_leftovers(kFailedAmongOthers));
  EXPECT_EQ(conclusion.on(Event::no_patience), (Actions{{Act::kill_leftovers, 0ms}}));
}

TEST(Conclusion, ReportsAreAwaitedForSixSeconds) {
  Driver driver(kLimits, kFailedAmongOthers);
  EXPECT_EQ(driver.taken(), (Acts{Act::exchange_reports}));
  driver.pass(5999ms);
  EXPECT_EQ(driver.stage(), Stage::exchanging_reports);
  driver.pass(1ms);
  EXPECT_EQ(driver.taken(), (Acts{Act::tell_outcome, Act::leave}));
}

TEST(Conclusion, TheOutcomeIsToldWhenTheReportsHaveCome) {
  Driver driver(kLimits, kFailedAmongOthers);
  driver.taken();
  driver.on(Event::reports_came);
  EXPECT_EQ(driver.taken(), (Acts{Act::tell_outcome, Act::leave}));
  driver.on(Event::reports_came);
  EXPECT_TRUE(driver.taken().empty());
  driver.on(Event::departed);
  EXPECT_EQ(driver.taken(), (Acts{Act::close, Act::watch_console}));
}

TEST(Conclusion, ALongDepartureIsToldOnceAndLimited) {
  Conclusion conclusion(kLimits);
  conclusion.begin(kAmongOthers);
  EXPECT_EQ(conclusion.on(Event::time_over), (Actions{{Act::say_staying, 25s}, {Act::arm, 25s}}));

  Driver driver(kLimits, kAmongOthers);
  EXPECT_EQ(driver.taken(), (Acts{Act::tell_outcome, Act::leave}));
  driver.pass(5s);
  EXPECT_EQ(driver.taken(), (Acts{Act::say_staying}));
  driver.pass(24999ms);
  EXPECT_EQ(driver.stage(), Stage::staying);
  driver.pass(1ms);
  EXPECT_EQ(driver.taken(), (Acts{Act::close, Act::watch_console}));
}

TEST(Conclusion, AShortTimeToLeaveIsNotTold) {
  Driver driver({.shutdown = 30s, .leave = 5s}, kAmongOthers);
  driver.taken();
  driver.pass(5s);
  EXPECT_EQ(driver.taken(), (Acts{Act::close, Act::watch_console}));
}

TEST(Conclusion, TheConsoleHasASecondAtLeast) {
  Driver driver({.shutdown = 0s, .leave = 30s}, kAlone);
  driver.pass(999ms);
  EXPECT_EQ(driver.stage(), Stage::draining_console);
  driver.pass(1ms);
  EXPECT_EQ(driver.stage(), Stage::done);
}

TEST(Conclusion, EachHurryEndsTheWaitOfOneStage) {
  Driver driver(kLimits, with_leftovers(kAmongOthers));
  driver.on(Event::hurry);
  EXPECT_EQ(driver.stage(), Stage::killing_leftovers);
  driver.on(Event::leftovers_gone);
  EXPECT_EQ(driver.stage(), Stage::leaving);
  driver.on(Event::hurry);
  EXPECT_EQ(driver.stage(), Stage::draining_console);
  driver.on(Event::hurry);
  EXPECT_EQ(driver.stage(), Stage::done);
}

TEST(Conclusion, AHurryBeforeTheFirstStageIsForThatStage) {
  Conclusion conclusion(kLimits);
  EXPECT_TRUE(conclusion.on(Event::hurry).empty());
  conclusion.begin(kFailedAmongOthers);
  EXPECT_EQ(conclusion.stage(), Stage::leaving) << "reports of other nodes are not awaited";
}

TEST(Conclusion, AHurryBeforeTheFirstStageIsForNoOtherStage) {
  Conclusion conclusion(kLimits);
  conclusion.on(Event::hurry);
  conclusion.begin(with_leftovers(kFailedAmongOthers));
  conclusion.on(Event::leftovers_gone);
  EXPECT_EQ(conclusion.stage(), Stage::exchanging_reports);

  Conclusion good(kLimits);
  good.on(Event::hurry);
  EXPECT_EQ(good.begin(with_leftovers(kAmongOthers)).back().act, Act::kill_leftovers);
  good.on(Event::leftovers_gone);
  EXPECT_EQ(good.stage(), Stage::leaving);
  EXPECT_FALSE(good.on(Event::time_over).empty());
  EXPECT_EQ(good.stage(), Stage::staying);
}

TEST(Conclusion, WithoutPatienceNoStageWaitsButEachDoesItsPart) {
  Conclusion conclusion(kLimits);
  EXPECT_TRUE(conclusion.on(Event::no_patience).empty());
  EXPECT_EQ(conclusion.begin(with_leftovers(kFailedAmongOthers)),
            (Actions{{Act::kill_leftovers, 0ms}}));
  const Actions rest = conclusion.on(Event::leftovers_gone);
  Acts acts;
  for (const auto& action : rest)
    if (action.act != Act::arm) acts.push_back(action.act);
  EXPECT_EQ(acts, (Acts{Act::say_leftovers, Act::exchange_reports, Act::tell_outcome, Act::leave,
                        Act::close, Act::stop}));
  EXPECT_EQ(conclusion.stage(), Stage::done);
}

TEST(Conclusion, WithoutPatienceLeftoversOfAGoodJobAreAskedAndKilled) {
  Conclusion conclusion(kLimits);
  conclusion.on(Event::no_patience);
  EXPECT_EQ(conclusion.begin(with_leftovers(kAlone)),
            (Actions{{Act::terminate_leftovers}, {Act::kill_leftovers, 0ms}}));
}

// Any events in any order lead to one report, one departure and one end, and no stage is left
// waiting for nothing.
TEST(Conclusion, EveryWayEndsOnceAndHangsNowhere) {
  std::mt19937 random(7);
  for (int run = 0; run < 5000; ++run) {
    Conclusion::Facts facts;
    facts.leftovers = random() % 2;
    facts.succeeded = random() % 2 == 0;
    facts.in_rendezvous = random() % 2 == 0;
    facts.exchanges_reports = facts.in_rendezvous && !facts.succeeded;
    Driver driver(kLimits, facts);
    for (int step = 0; step < 20 && driver.stage() != Stage::done; ++step) {
      if (random() % 3 == 0)
        driver.pass(std::chrono::seconds(random() % 12));
      else
        driver.on(static_cast<Event>(random() % 7));
      if (driver.stage() == Stage::killing_leftovers) continue;  // the real driver has a limit here
      EXPECT_TRUE(driver.waits() || driver.stage() == Stage::done);
    }
    if (driver.stage() == Stage::killing_leftovers) driver.on(Event::leftovers_gone);
    driver.pass(200s);
    EXPECT_EQ(driver.stage(), Stage::done);
    const Acts acts = driver.taken();
    const auto count = [&](Act act) { return std::count(acts.begin(), acts.end(), act); };
    EXPECT_EQ(count(Act::tell_outcome), 1);
    EXPECT_EQ(count(Act::leave), facts.in_rendezvous ? 1 : 0);
    EXPECT_EQ(count(Act::close), 1);
    EXPECT_EQ(count(Act::stop), 1);
    EXPECT_LE(count(Act::exchange_reports), 1);
  }
}

}  // namespace
}  // namespace lockstep::agent
