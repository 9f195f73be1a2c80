#include "agent/worker_group.h"

#include <gtest/gtest.h>

#include <signal.h>

#include <random>

namespace lockstep::agent {
namespace {

using K = EventKind;
using A = ActionKind;
using Actions = std::vector<Action>;

TEST(WorkerGroup, SuccessIsAllWorkersAtZero) {
  WorkerGroup group(2, 0);
  EXPECT_EQ(group.on({K::begin}), (Actions{{A::start_attempt}}));
  EXPECT_TRUE(group.on({K::worker_ok}).empty());  // the other one goes on
  EXPECT_EQ(group.on({K::worker_ok}), (Actions{{A::disarm}, {A::finish}}));
  EXPECT_EQ(group.outcome(), Outcome::succeeded);
}

TEST(WorkerGroup, AFailureStopsTheOthersAndRestartsAll) {
  WorkerGroup group(3, 1);
  group.on({K::begin});
  EXPECT_EQ(group.on({K::worker_failed}), (Actions{{A::stop_workers, SIGTERM}, {A::arm_grace}}));
  EXPECT_TRUE(group.on({K::worker_failed}).empty());
  EXPECT_EQ(group.on({K::worker_ok}), (Actions{{A::disarm}, {A::start_attempt}}));
  EXPECT_EQ(group.remaining_restarts(), 0);
  group.on({K::worker_failed});
  group.on({K::worker_failed});
  group.on({K::worker_failed});
  EXPECT_EQ(group.outcome(), Outcome::failed);
}

TEST(WorkerGroup, GraceThenKillThenGivingUp) {
  WorkerGroup group(2, 5);
  group.on({K::begin});
  group.on({K::worker_failed});
  EXPECT_EQ(group.on({K::grace_over}), (Actions{{A::kill_workers}, {A::arm_kill_limit}}));
  EXPECT_EQ(group.on({K::grace_over}), (Actions{{A::disarm}, {A::finish}}));
  EXPECT_TRUE(group.abandoned());
  EXPECT_EQ(group.outcome(), Outcome::failed) << "no restart beside a worker that would not die";
}

TEST(WorkerGroup, ASignalWhileRestartingEndsTheJob) {
  WorkerGroup group(2, 3);
  group.on({K::begin});
  group.on({K::worker_failed});
  EXPECT_EQ(group.on({K::stop_signal, SIGINT}),
            (Actions{{A::stop_workers, SIGINT}, {A::arm_grace}}));
  group.on({K::worker_failed});
  EXPECT_EQ(group.outcome(), Outcome::signaled);
  EXPECT_EQ(group.signal(), SIGINT);
}

TEST(WorkerGroup, MoreSignalsDoNotMoveTheDeadline) {
  WorkerGroup group(1, 0);
  group.on({K::begin});
  EXPECT_EQ(group.on({K::stop_signal, SIGHUP}),
            (Actions{{A::stop_workers, SIGHUP}, {A::arm_grace}}));
  EXPECT_EQ(group.on({K::stop_signal, SIGHUP}), (Actions{{A::stop_workers, SIGHUP}}));
}

TEST(WorkerGroup, AStuckWorkerForbidsTheRestartUnderWay) {
  WorkerGroup group(2, 3);
  group.on({K::begin});
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
  group.on({K::begin});
  group.on({K::stop_signal, SIGTERM});
  EXPECT_EQ(group.on({K::urgent}), (Actions{{A::kill_workers}, {A::arm_kill_limit}}));
  group.on({K::worker_failed});
  group.on({K::worker_failed});
  EXPECT_EQ(group.outcome(), Outcome::signaled);
  EXPECT_EQ(group.signal(), SIGTERM);
}

TEST(WorkerGroup, ASpawnFailureKillsThoseAlreadyStarted) {
  WorkerGroup group(4, 3);
  group.on({K::begin});
  EXPECT_EQ(group.on({K::spawn_failed, 2}), (Actions{{A::kill_workers}, {A::arm_kill_limit}}));
  group.on({K::worker_failed});
  EXPECT_EQ(group.on({K::worker_failed}), (Actions{{A::disarm}, {A::finish}}));
  EXPECT_EQ(group.outcome(), Outcome::spawn_failed);
}

// Every event is legal in every state, a finished group stays finished, and no attempt starts
// beyond the restarts allowed.
TEST(WorkerGroup, AnyStoryEndsWell) {
  std::mt19937 random(7);
  for (int story = 0; story < 20000; ++story) {
    WorkerGroup group(1 + static_cast<int>(random() % 4), static_cast<int>(random() % 3));
    const int allowed = group.remaining_restarts() + 1;
    int starts = 0;
    for (int step = 0; step < 40; ++step) {
      const bool ends_possible = group.live() > 0;
      auto kind = static_cast<K>(random() % 8);
      if (!ends_possible && (kind == K::worker_ok || kind == K::worker_failed)) kind = K::begin;
      const State before = group.state();
      const Event event{kind, kind == K::spawn_failed ? 0 : 15};
      for (const Action& action : group.on(event))
        starts += action.kind == A::start_attempt ? 1 : 0;
      if (before == State::finished) {
        ASSERT_EQ(group.state(), State::finished);
      }
      ASSERT_GE(group.live(), 0);
    }
    ASSERT_LE(starts, allowed);
  }
}

}  // namespace
}  // namespace lockstep::agent
