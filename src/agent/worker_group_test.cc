#include "agent/worker_group.h"

#include <gtest/gtest.h>

#include <signal.h>

#include <random>

namespace lockstep::agent {
namespace {

using K = EventKind;
using A = ActionKind;
using Actions = std::vector<Action>;

void begin(WorkerGroup& group) {
  group.on({K::begin});
  group.on({K::joined, 0});
}

TEST(WorkerGroup, SuccessIsAllWorkersOfAllNodesAtZero) {
  WorkerGroup group(2, 0);
  EXPECT_EQ(group.on({K::begin}), (Actions{{A::join}}));
  EXPECT_EQ(group.on({K::joined, 0}), (Actions{{A::start_attempt}}));
  EXPECT_TRUE(group.on({K::worker_ok}).empty());  // the other worker goes on
  EXPECT_EQ(group.on({K::worker_ok}), (Actions{{A::enter_barrier}}));
  EXPECT_EQ(group.on({K::barrier_over}), (Actions{{A::disarm}, {A::finish}}));
  EXPECT_EQ(group.outcome(), Outcome::succeeded);
}

TEST(WorkerGroup, AFailureStopsTheOthersAndRestartsAll) {
  WorkerGroup group(3, 1);
  begin(group);
  EXPECT_EQ(group.on({K::worker_failed}),
            (Actions{{A::tell_failure, 0}, {A::stop_workers, SIGTERM}, {A::arm_grace}}));
  EXPECT_TRUE(group.on({K::worker_failed}).empty());
  EXPECT_EQ(group.on({K::worker_ok}), (Actions{{A::disarm}, {A::join}}));
  group.on({K::joined, 1});
  EXPECT_EQ(group.remaining_restarts(), 0);
  EXPECT_EQ(group.on({K::worker_failed}).front(), (Action{A::tell_failure, 1}));
  group.on({K::worker_failed});
  group.on({K::worker_failed});
  EXPECT_EQ(group.outcome(), Outcome::failed);
}

TEST(WorkerGroup, GraceThenKillThenGivingUp) {
  WorkerGroup group(2, 5);
  begin(group);
  group.on({K::worker_failed});
  EXPECT_EQ(group.on({K::grace_over}), (Actions{{A::kill_workers}, {A::arm_kill_limit}}));
  EXPECT_EQ(group.on({K::grace_over}), (Actions{{A::disarm}, {A::finish}}));
  EXPECT_TRUE(group.abandoned());
  EXPECT_EQ(group.outcome(), Outcome::stuck) << "no restart beside a worker that would not die";
}

TEST(WorkerGroup, AHungWorkerThatDoesNotDieTakesOnlyItsNodeOutOfTheJob) {
  WorkerGroup hung(2, 1);
  begin(hung);
  EXPECT_FALSE(hung.restarts());
  EXPECT_EQ(hung.on({K::hung}).front(), (Action{A::tell_failure, 0}))
      << "not final: others restart";
  EXPECT_TRUE(hung.restarts());
  hung.on({K::grace_over});
  EXPECT_EQ(hung.on({K::grace_over}), (Actions{{A::disarm}, {A::finish}}));
  EXPECT_EQ(hung.outcome(), Outcome::stuck);
  WorkerGroup other(2, 1);
  begin(other);
  other.on({K::rejoin});
  other.on({K::grace_over});
  other.on({K::grace_over});
  EXPECT_EQ(other.outcome(), Outcome::stuck);
  WorkerGroup last(2, 0);
  begin(last);
  last.on({K::worker_failed});
  EXPECT_FALSE(last.restarts());
  last.on({K::grace_over});
  last.on({K::grace_over});
  EXPECT_EQ(last.outcome(), Outcome::failed) << "no restart is left";
}

TEST(WorkerGroup, ASignalWhileRestartingEndsTheJob) {
  WorkerGroup group(2, 3);
  begin(group);
  group.on({K::worker_failed});
  EXPECT_EQ(group.on({K::stop_signal, SIGINT}),
            (Actions{{A::tell_stop}, {A::stop_workers, SIGINT}, {A::arm_grace}}));
  EXPECT_FALSE(group.restarts());
  group.on({K::worker_failed});
  EXPECT_EQ(group.outcome(), Outcome::signaled);
  EXPECT_EQ(group.signal(), SIGINT);
}

TEST(WorkerGroup, MoreSignalsDoNotMoveTheDeadline) {
  WorkerGroup group(1, 0);
  begin(group);
  EXPECT_EQ(group.on({K::stop_signal, SIGHUP}),
            (Actions{{A::tell_stop}, {A::stop_workers, SIGHUP}, {A::arm_grace}}));
  EXPECT_EQ(group.on({K::stop_signal, SIGHUP}), (Actions{{A::stop_workers, SIGHUP}}));
}

TEST(WorkerGroup, AStuckWorkerForbidsTheRestartUnderWay) {
  WorkerGroup group(2, 3);
  begin(group);
  group.on({K::worker_failed});
  group.on({K::unhealthy});
  group.on({K::worker_failed});
  EXPECT_EQ(group.outcome(), Outcome::failed);
}

TEST(WorkerGroup, ASignalBeforeTheFirstStartEndsAtOnce) {
  WorkerGroup group(2, 3);
  EXPECT_EQ(group.on({K::stop_signal, SIGTERM}), (Actions{{A::disarm}, {A::finish}}));
  EXPECT_EQ(group.outcome(), Outcome::signaled_early);
}

TEST(WorkerGroup, UrgentKillsAtOnce) {
  WorkerGroup group(2, 3);
  begin(group);
  group.on({K::stop_signal, SIGTERM});
  EXPECT_EQ(group.on({K::urgent}), (Actions{{A::kill_workers}, {A::arm_kill_limit}}));
  group.on({K::worker_failed});
  group.on({K::worker_failed});
  EXPECT_EQ(group.outcome(), Outcome::signaled);
  EXPECT_EQ(group.signal(), SIGTERM);
}

TEST(WorkerGroup, ASpawnFailureKillsThoseAlreadyStarted) {
  WorkerGroup group(4, 3);
  begin(group);
  EXPECT_EQ(group.on({K::spawn_failed, 2}),
            (Actions{{A::tell_failure, 1}, {A::kill_workers}, {A::arm_kill_limit}}));
  group.on({K::worker_failed});
  EXPECT_EQ(group.on({K::worker_failed}), (Actions{{A::disarm}, {A::finish}}));
  EXPECT_EQ(group.outcome(), Outcome::spawn_failed);
}

TEST(WorkerGroup, AnotherNodeAsksForANewRound) {
  WorkerGroup group(2, 0);
  begin(group);
  EXPECT_EQ(group.on({K::rejoin}), (Actions{{A::stop_workers, SIGTERM}, {A::arm_grace}}));
  group.on({K::worker_failed});  // ended by our own TERM: not a failure
  EXPECT_EQ(group.on({K::worker_failed}), (Actions{{A::disarm}, {A::join}}));
  EXPECT_EQ(group.on({K::joined, 0}), (Actions{{A::start_attempt}}));
}

TEST(WorkerGroup, AStartIsHeldBackUntilThePauseIsOver) {
  WorkerGroup group(1, 3);
  begin(group);
  group.on({K::worker_failed});
  EXPECT_EQ(group.on({K::joined, 1, INT32_MAX, true}), (Actions{{A::arm_pause}}));
  EXPECT_EQ(group.state(), State::pausing);
  EXPECT_EQ(group.live(), 0);
  EXPECT_EQ(group.remaining_restarts(), 2);
  EXPECT_EQ(group.on({K::pause_over}), (Actions{{A::start_attempt}}));
  EXPECT_EQ(group.live(), 1);
  EXPECT_TRUE(group.on({K::pause_over}).empty());
}

TEST(WorkerGroup, WhatComesInThePauseEndsIt) {
  const auto pausing = [] {
    WorkerGroup group(2, 3);
    begin(group);
    group.on({K::rejoin});
    group.on({K::worker_failed});
    group.on({K::worker_failed});
    group.on({K::joined, 1, INT32_MAX, true});
    return group;
  };
  for (const K kind : {K::stop_signal, K::urgent}) {
    WorkerGroup stopped = pausing();
    EXPECT_EQ(stopped.on({kind, SIGINT}), (Actions{{A::disarm}, {A::finish}}));
    EXPECT_EQ(stopped.outcome(), Outcome::signaled);
    EXPECT_EQ(stopped.signal(), SIGINT);
  }
  WorkerGroup again = pausing();
  EXPECT_EQ(again.on({K::rejoin}), (Actions{{A::join}}));
  EXPECT_TRUE(again.on({K::pause_over}).empty()) << "a new round is not agreed on yet";
  WorkerGroup ended = pausing();
  EXPECT_EQ(ended.on({K::end}), (Actions{{A::disarm}, {A::finish}}));
  EXPECT_EQ(ended.outcome(), Outcome::peer_failed);
}

TEST(WorkerGroup, TheJobFailsElsewhere) {
  WorkerGroup group(1, 3);
  begin(group);
  group.on({K::end});
  group.on({K::worker_failed});
  EXPECT_EQ(group.outcome(), Outcome::peer_failed);
}

TEST(WorkerGroup, WhatComesInTheBarrierStillCounts) {
  WorkerGroup again(1, 0);
  begin(again);
  again.on({K::worker_ok});
  EXPECT_EQ(again.on({K::rejoin}), (Actions{{A::join}}));
  WorkerGroup ended(1, 0);
  begin(ended);
  ended.on({K::worker_ok});
  ended.on({K::end});
  EXPECT_EQ(ended.outcome(), Outcome::peer_failed);
}

TEST(WorkerGroup, ARestartUnderWayIsOffWhenTheJobFailsElsewhere) {
  WorkerGroup group(2, 3);
  begin(group);
  group.on({K::worker_failed});
  group.on({K::end});
  group.on({K::worker_failed});
  EXPECT_EQ(group.outcome(), Outcome::failed);
}

TEST(WorkerGroup, JoiningCanFailOrBeStopped) {
  WorkerGroup failed(1, 0);
  failed.on({K::begin});
  failed.on({K::join_failed});
  EXPECT_EQ(failed.outcome(), Outcome::no_rendezvous);
  WorkerGroup first(1, 0);
  first.on({K::begin});
  first.on({K::stop_signal, SIGTERM});
  EXPECT_EQ(first.outcome(), Outcome::signaled_early);
  WorkerGroup later(1, 0);
  begin(later);
  later.on({K::rejoin});
  later.on({K::worker_ok});
  later.on({K::stop_signal, SIGTERM});
  EXPECT_EQ(later.outcome(), Outcome::signaled);
  WorkerGroup spare(1, 0);
  spare.on({K::begin});
  spare.on({K::spare_over});
  EXPECT_EQ(spare.outcome(), Outcome::spare);
  // A node that took part before is not a spare.
  WorkerGroup late(1, 0);
  begin(late);
  late.on({K::rejoin});
  late.on({K::worker_failed});
  late.on({K::spare_over});
  EXPECT_EQ(late.outcome(), Outcome::succeeded);
}

// The collective breaks before the dead node is missed.
TEST(WorkerGroup, WhereTheJobMayShrinkTheLastFailureWaitsForALostNode) {
  for (const bool all_ended : {false, true}) {
    WorkerGroup group(2, 0, true);
    begin(group);
    EXPECT_EQ(group.on({K::worker_failed}),
              (Actions{{A::arm_doubt}, {A::stop_workers, SIGTERM}, {A::arm_grace}}));
    if (all_ended) {
      EXPECT_EQ(group.on({K::worker_failed}), (Actions{{A::disarm}}));
      EXPECT_EQ(group.on({K::rejoin}), (Actions{{A::join}}));
    } else {
      EXPECT_TRUE(group.on({K::rejoin}).empty());
      EXPECT_EQ(group.on({K::worker_failed}), (Actions{{A::disarm}, {A::join}}));
    }
    EXPECT_TRUE(group.on({K::doubt_over}).empty());
    EXPECT_EQ(group.on({K::joined, 0}), (Actions{{A::start_attempt}}));
    EXPECT_TRUE(group.on({K::doubt_over}).empty());
  }
}

TEST(WorkerGroup, ADoubtEndsAndTheFailureIsTold) {
  WorkerGroup ended(1, 0, true);
  begin(ended);
  ended.on({K::worker_failed});
  EXPECT_EQ(ended.on({K::doubt_over}), (Actions{{A::tell_failure, 1}, {A::disarm}, {A::finish}}));
  EXPECT_EQ(ended.outcome(), Outcome::failed);
  WorkerGroup stopping(2, 0, true);
  begin(stopping);
  stopping.on({K::worker_failed});
  EXPECT_EQ(stopping.on({K::doubt_over}), (Actions{{A::tell_failure, 1}}));
  EXPECT_TRUE(stopping.on({K::rejoin}).empty());
  EXPECT_EQ(stopping.on({K::worker_failed}), (Actions{{A::disarm}, {A::finish}}));
  EXPECT_EQ(stopping.outcome(), Outcome::failed);
}

TEST(WorkerGroup, ASignalOrAnEndIsStrongerThanADoubt) {
  WorkerGroup stopping(2, 0, true);
  begin(stopping);
  stopping.on({K::worker_failed});
  EXPECT_EQ(
      stopping.on({K::stop_signal, SIGTERM}),
      (Actions{{A::tell_failure, 1}, {A::tell_stop}, {A::stop_workers, SIGTERM}, {A::arm_grace}}));
  for (const K kind : {K::stop_signal, K::urgent, K::end}) {
    WorkerGroup group(1, 0, true);
    begin(group);
    group.on({K::worker_failed});
    const Actions actions = group.on({kind, SIGTERM});
    EXPECT_EQ(actions.front().kind == A::tell_failure, kind != K::end);
    EXPECT_EQ(actions.back(), (Action{A::finish}));
    EXPECT_EQ(group.outcome(), Outcome::failed);
  }
  WorkerGroup restarts(1, 1, true);
  begin(restarts);
  EXPECT_EQ(restarts.on({K::worker_failed}).front(), (Action{A::tell_failure, 0}));
}

// Every event is legal in every state, a finished group stays finished, and no attempt starts
// without an agreed round.
TEST(WorkerGroup, AnyStoryEndsWell) {
  std::mt19937 random(7);
  for (int story = 0; story < 20000; ++story) {
    WorkerGroup group(1 + static_cast<int>(random() % 4), static_cast<int>(random() % 3),
                      random() % 2 == 0);
    for (int step = 0; step < 60; ++step) {
      auto kind = static_cast<K>(random() % 16);
      const bool none = group.live() == 0;
      if (none && (kind == K::worker_ok || kind == K::worker_failed)) kind = K::begin;
      const State before = group.state();
      const bool hold = random() % 2 == 0;
      for (const Action& action :
           group.on({kind, kind == K::spawn_failed ? 0 : 15, INT32_MAX, hold})) {
        if (action.kind != A::start_attempt) continue;
        ASSERT_EQ(before, kind == K::joined ? State::joining : State::pausing);
        ASSERT_TRUE(kind == K::joined ? !hold : kind == K::pause_over);
      }
      if (before == State::finished) {
        ASSERT_EQ(group.state(), State::finished);
      }
      ASSERT_GE(group.live(), 0);
    }
  }
}

}  // namespace
}  // namespace lockstep::agent
