#include "looks/verdict.h"

#include "base/rounds_testing.h"
#include "looks/hang_words.h"
#include "looks/looks_testing.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <random>

namespace lockstep::looks {
namespace {

using std::chrono::milliseconds;

// A fault of rank 2, as it looks from outside, and where the rank then is.
struct Fault {
  const char* name;
  std::vector<stacks::Frame> frames;
  ProcessLook process;
  std::string line;
  VerdictState state = VerdictState::hung;
  FakeJob::Act act = {};
};

void burn(RankLook& look) {
  look.process->main_ns += 600'000'000;
  look.process->cpu_ticks += 60;
}

std::vector<Fault> faults() {
  return {
      {"sleeps", in_own_code(31), asleep('S', "hrtimer_nanosleep", SYS_clock_nanosleep),
       "job.py:31"},
      {"takes a lock twice", in_own_code(35), asleep('S', "futex_do_wait"), "job.py:35"},
      {"endless loop", in_own_code(33), asleep('R', "", -1), "job.py:33", VerdictState::waiting,
       burn},
      {"SIGSTOP", in_own_code(37), asleep('T', "do_signal_stop", -1), "job.py:37",
       VerdictState::stopped},
      {"another collective", in_collective("all_gather", 38), asleep('S', "futex_do_wait"),
       "job.py:38"},
      {"skipped collective", in_collective("barrier", 40), asleep('S', "futex_do_wait"),
       "job.py:40"},
      {"holds the GIL in C", in_own_code(44), asleep('S', "hrtimer_nanosleep", SYS_clock_nanosleep),
       "job.py:44"},
      {"state D", in_own_code(47), asleep('D', "kernel_clone", 58), "job.py:47"},
      {"FIFO", in_own_code(50), asleep('S', "wait_for_partner", SYS_openat), "job.py:50"},
      {"data loader", in_loader(), asleep('S', "poll_schedule_timeout", 7), "data.py:19",
       VerdictState::hung,
       [](RankLook& look) {
         // DataLoader's own poll wakes each 5 s.
         static int second = 0;
         if (++second % 5 == 0) look.process->main_ns += 400'000;
       }},
      {"never in new_group", in_own_code(53), asleep('S', "hrtimer_nanosleep"), "job.py:53"},
  };
}

TEST(Verdict, EachKindOfHangNamesRankAndLine) {
  for (const int ranks : {4, 8}) {
    for (const Fault& fault : faults()) {
      SCOPED_TRACE(fault.name);
      FakeJob job(ranks);
      job.train(20);
      EXPECT_EQ(job.verdict().state, VerdictState::training);
      job.others_wait({2});
      job.looks[2].stack = stack_of(fault.frames);
      job.looks[2].process->state = fault.process.state;
      job.looks[2].process->wchan = fault.process.wchan;
      job.looks[2].process->syscall = fault.process.syscall;
      if (fault.line == "data.py:19")
        job.looks[2].children = {{.pid = 8123,
                                  .process = asleep('S', "futex_do_wait"),
                                  .stack = stack_of(in_loader_child(19))}};
      const FakeJob::Act act = [&](RankLook& look) {
        if (look.rank == 2 && fault.act) fault.act(look);
      };
      job.seconds(4, act);
      EXPECT_EQ(job.alarms, 0);
      const Verdict& verdict = job.seconds(3, act);
      EXPECT_EQ(verdict.state, fault.state);
      EXPECT_EQ(verdict.alarm, fault.state != VerdictState::waiting);
      ASSERT_EQ(verdict.awaited.size(), 1U);
      EXPECT_EQ(verdict.awaited[0].ranks, std::vector<int>{2});
      EXPECT_EQ(verdict.place.line, fault.line);
      EXPECT_EQ(verdict.waiting.size(), static_cast<std::size_t>(ranks - 1));
      job.seconds(60, act);
      EXPECT_EQ(job.begun, fault.state == VerdictState::waiting ? 0 : 1);
    }
  }
}

TEST(Verdict, EndlessLoopIsWaitedForAndSaidToCompute) {
  FakeJob job(4);
  job.train(20);
  job.others_wait({2});
  job.looks[2].stack = stack_of(in_own_code(33));
  const Verdict& verdict = job.seconds(61, [](RankLook& look) {
    if (look.rank == 2) burn(look);
  });
  EXPECT_EQ(verdict.awaited, (std::vector<Suspect>{{{2}, "computes"}}));
  EXPECT_EQ(waiting_words(verdict), "waiting: 3 ranks wait for rank 2 at job.py:33 since 60 s");
}

TEST(Verdict, RanksThatCameLaterToWaitAreNotWaitedFor) {
  FakeJob job(4);
  job.train(20);
  job.looks[0].stack = stack_of(in_init());
  for (const std::size_t rank : {1U, 2U, 3U})
    job.looks[rank].stack = stack_of(in_own_code(9));
  job.seconds(2);
  for (const std::size_t rank : {1U, 3U})
    job.looks[rank].stack = stack_of(in_collective("new_group", 12));
  const Verdict& verdict = job.seconds(4);
  EXPECT_EQ(verdict.state, VerdictState::waiting);
  EXPECT_EQ(verdict.waiting, (std::vector<int>{0, 1, 3}));
  EXPECT_EQ(verdict.awaited, (std::vector<Suspect>{{{2}, ""}}));
  EXPECT_EQ(waiting_words(verdict), "waiting: 3 ranks wait for rank 2 at job.py:9 since 5 s");
}

TEST(Verdict, RankThatNeverComesIsNamedByTheStoreAtOnce) {
  FakeJob job(4);
  for (RankLook& look : job.looks)
    look.stack = stack_of(in_init());
  job.looks[2].stack = stack_of(in_own_code(9));
  job.around.evidence.never_came = {2};
  job.seconds(1);
  const Verdict& soon = job.seconds(1);
  EXPECT_EQ(soon.state, VerdictState::waiting);
  EXPECT_EQ(soon.awaited, (std::vector<Suspect>{{{2}, "never connected to the store"}}));
  EXPECT_EQ(soon.place.line, "job.py:9");
  const Verdict& late = job.seconds(5);
  EXPECT_EQ(late.state, VerdictState::hung);
  EXPECT_EQ(late.awaited, soon.awaited);
}

// What keeps a healthy job from moving, for a while.
struct Pause {
  const char* name;
  FakeJob::Act rank2;
  FakeJob::Act others = {};
};

TEST(Verdict, HealthyJobsThatLookDeadAreNeverCalledHung) {
  const std::vector<Pause> pauses = {
      {"prepares",
       [](RankLook& look) {
         burn(look);
         look.stack = stack_of(in_own_code(56));
       }},
      {"writes without CPU",
       [](RankLook& look) {
         look.stack = stack_of(in_own_code(58, "write"));
         look.process->main_io += 196'608;
         look.process->io += 196'608;
       }},
      {"saves to a slow disk", [](RankLook& look) { look.stack = stack_of(in_save()); }},
      {"threads prepare",
       [](RankLook& look) {
         look.stack = stack_of(in_own_code(60, "join"));
         look.process->cpu_ticks += 90;
       }},
      {"a thread downloads",
       [](RankLook& look) {
         look.stack = stack_of(in_own_code(60, "join"));
         look.process->io += 1 << 20;
       }},
      {"loaders work",
       [](RankLook& look) {
         look.stack = stack_of(in_loader());
         if (look.children.empty())
           look.children = {
               {.pid = 50, .process = asleep('R', ""), .stack = stack_of(in_loader_child(19))}};
         look.children[0].process.main_ns += 500'000'000;
       }},
      {"compiles in children",
       [](RankLook& look) {
         look.stack = stack_of({{"wait", kTorch + "_inductor/async_compile.py", 300},
                                {"train", "/home/u/job.py", 55}});
       }},
      {"debugger",
       [](RankLook& look) {
         look.stack = stack_of({{"Pdb.interaction", "/usr/lib/python3.13/pdb.py", 500},
                                {"train", "/home/u/job.py", 55}});
       }},
      {"traced", [](RankLook& look) { look.process->tracer = 4711; }},
      {"reads the terminal", [](RankLook& look) { look.process->reads_stdin = true; }},
      {"ended with 0", [](RankLook& look) { look.process.reset(); }},
  };
  for (const Pause& pause : pauses) {
    SCOPED_TRACE(pause.name);
    FakeJob job(4);
    job.train(20);
    job.others_wait({2});
    for (int i = 0; i < 300; ++i) {
      pause.rank2(job.looks[2]);
      const Verdict& verdict = job.second();
      ASSERT_NE(verdict.state, VerdictState::hung);
      if (i < 10) continue;
      ASSERT_EQ(verdict.state, VerdictState::waiting);
      ASSERT_EQ(verdict.awaited.size(), 1U);
      ASSERT_EQ(verdict.awaited[0].ranks, std::vector<int>{2});
    }
    EXPECT_EQ(job.alarms, 0);
  }
}

TEST(Verdict, RoundsSilentNodesAndImportsHoldTheClaim) {
  FakeJob job(4);
  job.train(20);
  job.around.changing = true;
  job.seconds(60);
  EXPECT_EQ(job.alarms, 0);
  EXPECT_EQ(job.verdict().hold, "the group of ranks changes");
  job.around.changing = false;
  job.around.world = 8;
  job.seconds(60);
  EXPECT_EQ(job.alarms, 0);
  EXPECT_EQ(job.verdict().hold, "4 of 8 ranks are not seen");
  job.around.world = 4;
  for (RankLook& look : job.looks)
    look.stack = stack_of({{"create_dynamic", "<frozen importlib._bootstrap_external>", 1294},
                           {"<module>", "/home/u/job.py", 3}});
  job.seconds(60);
  EXPECT_EQ(job.alarms, 0);
  EXPECT_EQ(job.verdict().state, VerdictState::quiet);
  EXPECT_EQ(verdict_words(job.verdict()), "quiet for 59 s: ranks 0-3 are importing modules");
}

TEST(Verdict, JobStoppedAsAWholeRaisesNoAlarm) {
  FakeJob job(4);
  job.train(20);
  for (RankLook& look : job.looks)
    look.process->state = 'T';
  job.seconds(100);
  EXPECT_EQ(job.verdict().state, VerdictState::stopped);
  EXPECT_EQ(job.alarms, 0);
  for (RankLook& look : job.looks)
    look.process->state = 'S';
  job.train(2);
  EXPECT_EQ(job.verdict().state, VerdictState::training);
}

TEST(Verdict, LimitIsFiveTimesTheLongestQuietSpanOfTheTraining) {
  FakeJob job(4, {});
  job.seconds(119);
  EXPECT_EQ(job.alarms, 0);
  EXPECT_EQ(job.verdict().limit, milliseconds(120'000));
  job.train(20);
  EXPECT_EQ(job.verdict().limit, milliseconds(30'000));
  EXPECT_EQ(job.judge().longest_quiet(), milliseconds(0));
  for (int step = 0; step < 5; ++step) {
    job.others_wait({});
    job.seconds(12);
    job.train(1);
  }
  // 12 looks without a change, after the look that found the last one.
  EXPECT_NEAR(static_cast<double>(job.verdict().limit.count()), 60'000, 5'000);
  job.others_wait({});
  job.seconds(50);
  EXPECT_EQ(job.alarms, 0);
  job.seconds(20);
  EXPECT_EQ(job.verdict().state, VerdictState::hung);
}

TEST(Verdict, SpansWithAReasonDoNotLengthenTheLimit) {
  FakeJob job(4, {});
  job.train(20);
  job.others_wait({2});
  job.looks[2].stack = stack_of(in_save());
  job.seconds(100);
  job.train(3);
  EXPECT_EQ(job.verdict().limit, milliseconds(30'000));
}

TEST(Verdict, LateLookBeginsAnew) {
  FakeJob job(4);
  job.train(20);
  job.others_wait({});
  job.looks[2].stack = stack_of(in_own_code(31));
  job.seconds(4);
  job.look(milliseconds(60'000));
  job.seconds(4);
  EXPECT_EQ(job.alarms, 0);
  job.seconds(2);
  EXPECT_EQ(job.verdict().state, VerdictState::hung);
}

// The folds of other nodes grow older while the judge's own process is suspended.
TEST(Verdict, JudgeThatWasSuspendedBeginsAnew) {
  const RankLook look{.rank = 0,
                      .pid = 1,
                      .process = asleep('S', "futex_do_wait"),
                      .stack = stack_of(in_own_code(31))};
  const std::vector<Seen> seen = {{&look, what_doing(look), {.quiet = milliseconds(3'600'000)}}};
  const Fold folded = fold("n1", seen);
  Judge judge({.hang_after = milliseconds(5000)});
  const Surroundings around{.world = 1};
  io::TimePoint now{std::chrono::hours(5)};
  const auto state_after = [&](int ms) {
    now += milliseconds(ms);
    return judge.feed(folded, around, now).state;
  };
  EXPECT_NE(state_after(0), VerdictState::hung);  // a judge that has just begun has seen nothing
  for (int i = 0; i < 4; ++i)
    EXPECT_NE(state_after(1000), VerdictState::hung);
  EXPECT_NE(state_after(60'000), VerdictState::hung);
  for (int i = 0; i < 4; ++i)
    EXPECT_NE(state_after(1000), VerdictState::hung);
  EXPECT_EQ(state_after(1000), VerdictState::hung);
}

TEST(Verdict, OffNeverClaims) {
  FakeJob job(4, {.hang_after = Millis(0)});
  job.train(20);
  job.others_wait({});
  job.seconds(1000);
  EXPECT_EQ(job.verdict().state, VerdictState::quiet);
  EXPECT_EQ(job.alarms, 0);
}

TEST(Verdict, AllAlikeNamesNobody) {
  FakeJob job(4);
  job.train(20);
  job.others_wait({});
  const Verdict& verdict = job.seconds(7);
  EXPECT_EQ(verdict.state, VerdictState::hung);
  EXPECT_TRUE(verdict.awaited.empty());
  EXPECT_EQ(verdict.waiting.size(), 4U);
}

TEST(Verdict, OutsideOfCollectivesTheOutlierIsNamed) {
  FakeJob job(4);
  job.train(20);
  for (RankLook& look : job.looks)
    look.stack = stack_of(in_own_code(31));
  EXPECT_TRUE(job.seconds(7).awaited.empty());
  job.looks[1].stack = stack_of(in_own_code(32));
  EXPECT_EQ(job.seconds(7).awaited, (std::vector<Suspect>{{{1}, ""}}));
}

TEST(Verdict, EquallyLargeGroupsAreAllListed) {
  FakeJob job(4);
  job.train(20);
  job.others_wait({});
  for (const int rank : {1, 3})
    job.looks[static_cast<std::size_t>(rank)].stack = stack_of(in_collective("all_gather", 38));
  const Verdict& verdict = job.seconds(7);
  EXPECT_EQ(verdict.awaited, (std::vector<Suspect>{{{0, 2}, ""}, {{1, 3}, ""}}));
}

TEST(Verdict, SpinningCollectivesNeedACounterThatStandsStill) {
  FakeJob job(4);
  job.train(20);
  for (RankLook& look : job.looks)
    look.stack = stack_of(in_collective("all_reduce", 44));
  job.looks[1].stack = stack_of(in_own_code(31));
  const FakeJob::Act spin = [](RankLook& look) {
    if (look.rank != 1) burn(look);
  };
  job.seconds(20, spin);
  EXPECT_EQ(job.alarms, 0);
  job.around.evidence.inside = {{0, milliseconds(20'000)}, {2, milliseconds(20'000)}};
  job.around.evidence.never_entered = {1};
  job.seconds(3, spin);
  EXPECT_EQ(job.alarms, 0);
  job.around.evidence.inside[3] = milliseconds(4'000);  // a collective ended 4 s ago
  EXPECT_EQ(job.second(spin).state, VerdictState::waiting);
  job.around.evidence.inside[3] = milliseconds(20'000);
  const Verdict& verdict = job.second(spin);
  EXPECT_EQ(verdict.state, VerdictState::hung);
  EXPECT_TRUE(verdict.spins);
  EXPECT_EQ(verdict.awaited, (std::vector<Suspect>{{{1}, "never entered the collective"}}));
}

// `loss.item()` spins in code of the user's own, which no table knows.
TEST(Verdict, ARankThatSpinsInItsOwnCodeIsIdleByItsRecorder) {
  FakeJob job(4);
  job.train(20);
  for (RankLook& look : job.looks)
    look.stack = stack_of(in_own_code(88, "step"));
  for (int rank = 0; rank < 4; ++rank)
    job.around.evidence.inside[rank] = milliseconds(20'000);
  job.around.evidence.all_entered = true;
  job.looks[3].stack = stack_of(in_own_code(90, "step"));
  const Verdict& verdict = job.seconds(8, burn);
  EXPECT_EQ(verdict.state, VerdictState::hung);
  EXPECT_TRUE(verdict.awaited.empty());
  // A rank whose stack changes is at work, whatever an old dump says.
  for (int line = 0; line < 9; ++line) {
    job.looks[3].stack = stack_of(in_own_code(100 + line, "step"));
    job.second(burn);
  }
  EXPECT_NE(job.verdict().state, VerdictState::hung);
}

// All ranks have one stack, but one of them has not entered the collective.
TEST(Verdict, ARankThatSpinsOutsideOfTheCollectiveIsWaitedFor) {
  FakeJob job(4);
  job.train(20);
  for (RankLook& look : job.looks)
    look.stack = stack_of(in_own_code(88, "step"));
  for (const int rank : {0, 1, 2})
    job.around.evidence.inside[rank] = milliseconds(20'000);
  job.around.evidence.never_entered = {3};
  const Verdict& verdict = job.seconds(12, burn);
  EXPECT_EQ(verdict.state, VerdictState::waiting);
  EXPECT_EQ(verdict.waiting, (std::vector<int>{0, 1, 2}));
  EXPECT_EQ(verdict.awaited, (std::vector<Suspect>{{{3}, "never entered the collective"}}));
}

// Without a limit from the user, a step of the GPU may take as long as earlier ones did, and
// longer.
TEST(Verdict, LongStepsOfTheGpuRaiseTheLimitOfRanksThatSpin) {
  FakeJob job(2, {});
  const auto step = [&job](int seconds) {
    job.train(3);
    for (RankLook& look : job.looks)
      look.stack = stack_of(in_collective("all_reduce", 44));
    job.seconds(seconds, burn);
  };
  for (int i = 0; i < 5; ++i)
    step(20);
  for (int rank = 0; rank < 2; ++rank)
    job.around.evidence.inside[rank] = milliseconds(1'000'000);
  step(90);
  EXPECT_EQ(job.alarms, 0);
  job.seconds(30, burn);
  EXPECT_EQ(job.verdict().state, VerdictState::hung);
}

TEST(Verdict, ClearsItself) {
  FakeJob job(4);
  job.train(20);
  job.others_wait({});
  job.looks[2].stack = stack_of(in_own_code(31));
  job.seconds(8);
  EXPECT_TRUE(job.verdict().alarm);
  job.train(2);
  EXPECT_EQ(job.verdict().state, VerdictState::training);
  EXPECT_FALSE(job.verdict().alarm);
}

int random_runs() {
  const char* text = std::getenv("LOCKSTEP_RANDOM_RUNS");
  return text != nullptr ? std::atoi(text) : test_rounds(250);
}

// Whatever the ranks do: as long as one of them moves every few seconds, nobody claims a hang.
TEST(Verdict, RandomJobsInWhichSomethingMovesAreNeverHung) {
  const std::vector<std::vector<stacks::Frame>> frames = {
      in_backward(),  in_collective("all_gather", 3),
      in_own_code(1), in_own_code(2),
      in_loader(),    in_save(),
      in_init()};
  for (int run = 0; run < random_runs(); ++run) {
    SCOPED_TRACE(run);
    std::mt19937 random(static_cast<unsigned>(run));
    const auto pick = [&random](std::size_t count) {
      return std::uniform_int_distribution<std::size_t>(0, count - 1)(random);
    };
    FakeJob job(static_cast<int>(1 + pick(5)));
    int still = 0;
    for (int i = 0; i < 60; ++i) {
      RankLook& look = job.looks[pick(job.looks.size())];
      ++still;
      // A rank moves in one of the ways that count.
      if (still == 4 || pick(3) == 0) {
        still = 0;
        // Who asks a store for other ranks sends bytes and uses some CPU all the time.
        const bool asks = what_doing(*look.stack).doing == Doing::rendezvous;
        switch (asks ? 2 * pick(2) : pick(4)) {
          case 0:
            look.process->main_ns += 150'000'000;
            break;
          case 1:
            look.process->main_io += 1;
            ++look.process->io;
            look.process->main_ns += 1'200'000;
            break;
          case 2:
            look.stack = stack_of(in_own_code(100 + i));
            break;
          default:
            look.process->main_ns += 2'000'000;
            look.process->cpu_ticks += 9;
            break;
        }
      }
      // Others change their place in the kernel only, which proves nothing.
      job.looks[pick(job.looks.size())].process->state = "SDR"[pick(3)];
      const Verdict& verdict = job.second();
      ASSERT_NE(verdict.state, VerdictState::hung) << i;
      if (pick(9) == 0) look.stack = stack_of(frames[pick(frames.size())]);
    }
  }
}

}  // namespace
}  // namespace lockstep::looks
