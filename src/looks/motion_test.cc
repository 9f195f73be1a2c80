#include "looks/motion.h"

#include "looks/looks_testing.h"

#include <gtest/gtest.h>

namespace lockstep::looks {
namespace {

using std::chrono::milliseconds;

class MotionTest : public testing::Test {
 protected:
  MotionTest() {
    look_.process = asleep('S', "futex_do_wait");
    look_.stack = stack_of(in_own_code(31));
  }
  // Looks a second later.
  Motion second(milliseconds passed = milliseconds(1000)) {
    now_ += passed;
    return tracker_.feed(look_, what_doing(look_), now_);
  }
  // Returns whether the change of a look counts as movement. Three quiet seconds go before.
  template <class Change>
  bool moves(Change change) {
    for (int i = 0; i < 3; ++i)
      second();
    change(look_);
    return second().quiet == milliseconds(0);
  }

  RankLook look_{.rank = 3, .pid = 100};
  MotionTracker tracker_{milliseconds(1000)};
  io::TimePoint now_{std::chrono::hours(1)};
};

TEST_F(MotionTest, QuietGrowsWhileNothingMoves) {
  EXPECT_EQ(second().quiet, milliseconds(0));
  EXPECT_EQ(second().quiet, milliseconds(1000));
  EXPECT_EQ(second().quiet, milliseconds(2000));
  look_.stack.reset();  // not read this time
  EXPECT_EQ(second().quiet, milliseconds(3000));
}

TEST_F(MotionTest, WhatCountsAsMovement) {
  EXPECT_TRUE(moves([](RankLook& look) { look.stack = stack_of(in_own_code(32)); }));
  EXPECT_TRUE(moves([](RankLook& look) { look.process->main_ns += 30'000'000; }));
  EXPECT_TRUE(moves([](RankLook& look) { ++look.process->main_io, ++look.process->io; }));
  EXPECT_TRUE(moves([](RankLook& look) { look.process->cpu_ticks += 50; }));
  EXPECT_TRUE(moves([](RankLook& look) { look.process->io += 1 << 20; }));
  EXPECT_TRUE(moves([](RankLook& look) { ++look.process->start_ticks; }));
  EXPECT_TRUE(moves([](RankLook& look) { ++look.pid; }));
}

TEST_F(MotionTest, WhatProvesNothing) {
  // Wakeups of a poll, gloo's thread, a thread that prints a heartbeat, another place in the
  // kernel.
  EXPECT_FALSE(moves([](RankLook& look) { look.process->main_ns += 900'000; }));
  EXPECT_FALSE(moves([](RankLook& look) { look.process->main_ns += 9'000'000; }));
  EXPECT_FALSE(moves([](RankLook& look) { look.process->cpu_ticks += 3; }));
  EXPECT_FALSE(moves([](RankLook& look) { look.process->io += 100, look.output_bytes += 100; }));
  EXPECT_FALSE(moves([](RankLook& look) { look.process->state = 'D', look.process->wchan = "x"; }));
}

// Real dumps of PyTorch have 100 KB, and each comes with a line on stderr.
TEST_F(MotionTest, ADumpThatTheAgentAskedForIsNoMovement) {
  const auto dumps = [](RankLook& look) {
    look.dumps = true;
    look.process->io += 110'000;
    look.process->cpu_ticks += 30;
    look.output_bytes += 200;
  };
  EXPECT_FALSE(moves(dumps));
  EXPECT_FALSE(moves([&](RankLook& look) { dumps(look), look.process->main_ns += 9'000'000; }));
  EXPECT_TRUE(moves([&](RankLook& look) { dumps(look), look.process->main_ns += 30'000'000; }));
  EXPECT_TRUE(moves([&](RankLook& look) { dumps(look), look.stack = stack_of(in_own_code(34)); }));
  look_.dumps = false;
  EXPECT_TRUE(moves([](RankLook& look) { look.process->io += 110'000; }));
}

TEST_F(MotionTest, ASlowDownloadMoves) {
  const auto wakes = [](RankLook& look) { ++look.process->voluntary; };
  EXPECT_FALSE(moves(wakes)) << "a lock";
  look_.process->wchan = "poll_schedule_timeout";
  EXPECT_FALSE(moves(wakes)) << "a poll";
  look_.process->wchan = "wait_woken";
  EXPECT_FALSE(moves([](RankLook&) {}));
  EXPECT_TRUE(moves(wakes));
  look_.stack = stack_of(in_init());
  EXPECT_FALSE(moves(wakes)) << "an answer of the store brings no rank";
}

TEST_F(MotionTest, ALoopThatTriesAgainMoves) {
  look_.process->wchan = "hrtimer_nanosleep";
  const auto wakes = [](RankLook& look) { ++look.process->voluntary; };
  EXPECT_FALSE(moves([](RankLook&) {})) << "one long sleep";
  EXPECT_TRUE(moves(wakes));
  look_.stack = stack_of(in_collective("all_reduce", 44));
  EXPECT_FALSE(moves(wakes)) << "a library that sleeps until the others have come";
  look_.stack = stack_of(in_init());
  EXPECT_FALSE(moves(wakes)) << "the store is asked again";
  look_.stack = stack_of(in_own_code(31));
  EXPECT_FALSE(moves([](RankLook& look) { look.process->voluntary += 100; }))
      << "whether a collective is over";
  look_.stack.reset();
  EXPECT_FALSE(moves(wakes)) << "it may be in a library";
}

TEST_F(MotionTest, ToAskTheStoreForOtherRanksIsNoMovement) {
  look_.stack = stack_of(in_init());
  EXPECT_FALSE(moves([](RankLook& look) {
    look.process->main_ns += 60'000'000, look.process->cpu_ticks += 8;
    look.process->main_io += 100, look.process->io += 100, look.output_bytes += 100;
  }));
  EXPECT_TRUE(moves([](RankLook& look) { look.process->main_ns += 150'000'000; }));
  EXPECT_TRUE(moves([](RankLook& look) { look.process->io += 1 << 20; }));
}

TEST_F(MotionTest, BusyThreadsProveNothingInsideACollective) {
  look_.stack = stack_of(in_collective("all_reduce", 88));
  EXPECT_FALSE(moves([](RankLook& look) { look.process->cpu_ticks += 100; }));
  EXPECT_FALSE(moves([](RankLook& look) { look.process->io += 1 << 20; }));
}

TEST_F(MotionTest, ChildrenMove) {
  const auto child = [](RankLook& look) -> ProcessLook& { return look.children[0].process; };
  look_.children = {{.pid = 7, .process = asleep('S', "")}};
  EXPECT_FALSE(moves([](RankLook&) {}));
  EXPECT_TRUE(moves([&](RankLook& look) { child(look).main_ns += 50'000'000; }));
  EXPECT_TRUE(moves([&](RankLook& look) { child(look).cpu_ticks += 10; }));
  EXPECT_TRUE(moves([&](RankLook& look) { child(look).io += 1 << 20; }));
  EXPECT_FALSE(moves([&](RankLook& look) { child(look).cpu_ticks += 1; }));
  // A helper that is started again and again is not progress.
  EXPECT_FALSE(moves([&](RankLook& look) { look.children[0].pid = 8; }));
  EXPECT_FALSE(moves([&](RankLook& look) {
    ++child(look).start_ticks;
    child(look).cpu_ticks += 100;
  }));
  look_.children[0].stack = stack_of(in_loader_child(4));
  EXPECT_FALSE(moves([](RankLook&) {}));
  EXPECT_TRUE(
      moves([&](RankLook& look) { look.children[0].stack = stack_of(in_loader_child(5)); }));
}

TEST_F(MotionTest, UnreadableStackLeavesTheMainThreadsTime) {
  look_.stack.reset();
  EXPECT_FALSE(moves([](RankLook& look) { look.process->main_ns += 900'000; }));
  EXPECT_TRUE(moves([](RankLook& look) { look.process->main_ns += 9'000'000; }));
}

TEST_F(MotionTest, SameStackAgesAlsoWhileTheRankComputes) {
  second();
  look_.process->main_ns += 900'000'000;
  const Motion motion = second();
  EXPECT_TRUE(motion.computes);
  EXPECT_EQ(motion.quiet, milliseconds(0));
  EXPECT_EQ(motion.same, milliseconds(1000));
}

TEST_F(MotionTest, LateLookBeginsAnew) {
  second();
  second();
  EXPECT_EQ(second(milliseconds(2900)).quiet, milliseconds(3900));
  EXPECT_EQ(second(milliseconds(3100)).quiet, milliseconds(0));
}

TEST_F(MotionTest, EndedRankIsForgotten) {
  second();
  const auto process = look_.process;
  look_.process.reset();
  EXPECT_EQ(second().quiet, milliseconds(0));
  look_.process = process;
  EXPECT_EQ(second().quiet, milliseconds(0));
}

}  // namespace
}  // namespace lockstep::looks
