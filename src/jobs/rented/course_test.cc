#include "jobs/rented/course.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

namespace lockstep::jobs::rented {
namespace {

// The fake world of one job: the journal, the machine, the outputs. Processes come and go.
struct World {
  // The journal, which outlives every process.
  CourseRecord record;
  bool known = true;  // the journal has the job
  bool intent = false;
  // The machine and its job.
  bool alive = false;
  bool taken = false;  // preempted, while or before the job ran
  bool job_runs = false;
  bool job_ended = false;
  int job_code = 0;
  bool held = false;
  // What happened.
  int launches = 0;
  int attempts = 0;   // jobs that started
  int produced = 0;   // the attempt whose outputs lie on the machine; 0: none
  int brought = 0;    // the attempt whose outputs are here
  int successes = 0;  // attempts that recorded exit code 0
  int told = 0;
  int told_code = -1;
  std::vector<std::string> wrong;
};

struct Killed {};

// Takes each step in the fake world. The driver may be killed before and after a step.
class Process {
 public:
  Process(World& world, std::mt19937& chance, bool foreign, double kills)
      : world_(world),
        chance_(chance),
        foreign_(foreign),
        finishes_(world.record.ending),
        kills_(kills),
        course_(world.record, {.brings_back = true}) {}

  void run() {
    Step step = course_.first();
    for (int steps = 0; step != Step::quit && step != Step::leave; ++steps) {
      if (steps > 200) return wrong("the course never ends");
      maybe_die();
      Seen seen = take(step);
      if (step == Step::conclude) return;
      maybe_die();
      seen.started = world_.record.started;
      seen.asked_to_end = asked_to_end_ = asked_to_end_ || happens(0.01);
      seen.asked_to_leave = asked_to_leave_ = asked_to_leave_ || happens(0.01);
      step = course_.next(seen);
    }
  }

 private:
  bool happens(double probability) { return std::bernoulli_distribution(probability)(chance_); }
  void maybe_die() {
    if (happens(kills_)) throw Killed();
  }
  void wrong(const std::string& what) { world_.wrong.push_back(what); }

  Seen take(Step step) {
    switch (step) {
      case Step::check_begin:
        return error(foreign_ && happens(0.05));
      case Step::rent:
        return rent();
      case Step::run:
        return run_job();
      case Step::ask_loss:
        return {.taken = world_.taken};
      case Step::save:
        return bring(world_.taken && happens(0.5));
      case Step::bring_back:
        return bring(happens(0.1));
      case Step::note_loss:
        world_.record = {};
        world_.job_runs = world_.job_ended = false;
        return {};
      case Step::hold:
        world_.held = world_.alive && happens(0.8);
        return error(!world_.held);
      case Step::note_end:
        world_.record.ending = true;
        world_.record.code = course_.job_code();
        return {};
      case Step::terminate:
        if (!asked_to_end_ && !finishes_ && world_.job_runs)
          wrong("a machine was terminated under a running job");
        if (happens(0.1)) return error(true);
        world_.alive = world_.intent = false;
        return {};
      case Step::conclude:
        ++world_.told;
        world_.told_code = course_.code();
        world_.known = false;
        return {};
      case Step::leave:
      case Step::quit:
        break;
    }
    return {};
  }

  Seen error(bool failed) { return {.ok = !failed, .canceled = failed && happens(0.3)}; }

  // A launch writes its intent into the journal first, so a lost answer is found again.
  Seen rent() {
    // Renting again terminates a preempted machine.
    if (world_.alive && world_.taken) world_.alive = world_.intent = false;
    if (happens(0.1)) return error(true);  // the provider refused
    if (!std::exchange(world_.intent, true)) {
      if (world_.alive) wrong("two machines for one intent");
      ++world_.launches;
      world_.alive = true;
      world_.taken = false;
      world_.produced = 0;
      if (happens(0.1)) return error(true);  // the answer is lost
    }
    maybe_die();
    world_.record.working = true;
    return {};
  }

  Seen run_job() {
    if (!world_.alive) return {.code = 255, .gone = true};
    if (!world_.record.started && happens(0.1)) return {.code = 1};  // the job could not start
    if (!world_.record.started) {
      if (world_.successes > 0) wrong("a job that had succeeded ran again");
      world_.record.started = true;
      maybe_die();
      world_.job_runs = true;
      world_.produced = ++world_.attempts;
    } else if (!world_.job_runs && !world_.job_ended) {
      world_.job_runs = true;  // the last process died before the job started: it starts now
      world_.produced = ++world_.attempts;
    }
    maybe_die();
    if (happens(0.05)) return error(true);  // the host does not answer
    if (happens(0.05)) return {.code = 143, .left = true};
    if (!world_.job_ended && happens(0.25)) {
      world_.taken = true;
      world_.job_runs = false;
      const bool gone = happens(0.5);
      if (gone) world_.alive = false;
      if (gone) world_.produced = 0;
      return {.code = 143, .gone = gone};
    }
    if (!std::exchange(world_.job_ended, true)) {
      world_.job_code = happens(0.7) ? 0 : 3;
      world_.successes += world_.job_code == 0 ? 1 : 0;
    }
    world_.job_runs = false;
    return {.code = world_.job_code};
  }

  Seen bring(bool fails) {
    if (!world_.alive) return {.ok = false, .gone = true};
    if (fails) return error(true);
    world_.brought = std::max(world_.brought, world_.produced);
    return {};
  }

  World& world_;
  std::mt19937& chance_;
  bool foreign_;   // without the environment of the job's command
  bool finishes_;  // another process has decided that the job is over
  bool asked_to_end_ = false;
  bool asked_to_leave_ = false;
  double kills_;
  Course course_;
};

// Runs one job to its end: the process that its command started, then others, one at a time as the
// claim allows. Each may be killed anywhere, except the last.
World simulate(unsigned seed) {
  std::mt19937 chance(seed);
  World world;
  constexpr int kProcesses = 12;
  for (int number = 0; number < kProcesses && world.known; ++number) {
    // Without a process the job may end, and the machine may be preempted.
    if (number > 0 && world.job_runs && std::bernoulli_distribution(0.5)(chance)) {
      world.job_runs = false;
      world.job_ended = true;
      world.successes += 1;
    }
    if (number > 0 && world.alive && std::bernoulli_distribution(0.1)(chance)) {
      world.alive = false;
      world.taken = true;
      world.job_runs = false;
      world.produced = 0;
    }
    const double kills = number + 1 == kProcesses ? 0 : 0.06;
    try {
      Process(world, chance, number > 0, kills).run();
    } catch (const Killed&) {
    }
  }
  // The guard, or the machine's own lease.
  if (world.known && !world.held) world.alive = world.intent = false;
  return world;
}

TEST(CourseRandom, TenThousandJobsKeepTheirPromises) {
  int ended = 0;
  int succeeded = 0;
  for (unsigned seed = 0; seed < 10'000; ++seed) {
    const World world = simulate(seed);
    for (const std::string& what : world.wrong)
      ADD_FAILURE() << "seed " << seed << ": " << what;
    EXPECT_LE(world.told, 1) << "seed " << seed << ": the end was told twice";
    if (world.told == 0) continue;
    ++ended;
    // The user is told of a failed termination. The guard and the lease are left to terminate the
    // machine.
    if (world.alive && !world.held) {
      EXPECT_NE(world.told_code, 0) << "seed " << seed;
    }
    if (world.told_code != 0) continue;
    ++succeeded;
    EXPECT_GT(world.successes, 0) << "seed " << seed << ": told as success, and none was recorded";
    EXPECT_EQ(world.brought, world.attempts) << "seed " << seed << ": outputs are not here";
    EXPECT_FALSE(world.alive) << "seed " << seed;
    if (::testing::Test::HasFailure()) return;
  }
  EXPECT_GT(ended, 9'000);
  EXPECT_GT(succeeded, 3'000);
}

// Walks a course with the given observations. Returns the steps.
std::vector<Step> walk(Course course, const std::vector<Seen>& seen) {
  std::vector<Step> steps = {course.first()};
  for (const Seen& each : seen)
    steps.push_back(course.next(each));
  return steps;
}

const CourseRules kOwn{.brings_back = true};

TEST(Course, AJobThatSucceeds) {
  EXPECT_EQ(walk({{.working = true}, kOwn}, {{.started = true}, {}, {}, {}}),
            (std::vector<Step>{Step::run, Step::bring_back, Step::note_end, Step::terminate,
                               Step::conclude}));
}

TEST(Course, AFailureOnGoodMachinesEndsTheJob) {
  EXPECT_EQ(walk({{.working = true}, kOwn}, {{.code = 3, .started = true}, {.taken = false}}),
            (std::vector<Step>{Step::run, Step::ask_loss, Step::bring_back}));
}

TEST(Course, MachinesThatAreTakenMeanAnotherAttempt) {
  EXPECT_EQ(walk({{.working = true}, kOwn},
                 {{.code = 143, .started = true}, {.taken = true}, {}, {}, {}, {}}),
            (std::vector<Step>{Step::run, Step::ask_loss, Step::save, Step::note_loss,
                               Step::check_begin, Step::rent, Step::run}));
}

TEST(Course, AJobThatAPersonCanceledIsNotBegunAgain) {
  EXPECT_EQ(walk({{.working = true}, kOwn}, {{.code = 143, .started = true, .canceled_job = true}}),
            (std::vector<Step>{Step::run, Step::bring_back}));
}

TEST(Course, OutputsThatDoNotComeHoldTheMachine) {
  Course course({.working = true}, kOwn);
  course.first();
  course.next({.started = true});
  EXPECT_EQ(course.next({.ok = false}), Step::hold);
  EXPECT_EQ(course.next({}), Step::conclude);
  EXPECT_EQ(course.code(), 1) << "a job without its outputs did not succeed";
}

// Returns the step after the outputs of a job that ended well could not be brought.
Step after_failed_bring(const Seen& seen) {
  return walk({{.working = true}, kOwn}, {{.started = true}, seen}).back();
}

TEST(Course, AJobWhoseOutputsAreLostDidNotSucceed) {
  Course course({.working = true}, kOwn);
  course.first();
  course.next({.started = true});
  EXPECT_EQ(course.next({.ok = false, .gone = true}), Step::note_end);
  EXPECT_EQ(course.job_code(), 1);
}

TEST(Course, AProcessThatIsAskedToEndLeavesTheRest) {
  EXPECT_EQ(after_failed_bring({.ok = false, .asked_to_leave = true}), Step::leave);
  EXPECT_EQ(walk({{.working = true}, kOwn}, {{.asked_to_leave = true, .code = 143}}).back(),
            Step::leave);
  EXPECT_EQ(walk({{.ending = true}, kOwn}, {{}, {.ok = false, .asked_to_leave = true}}).back(),
            Step::leave);
}

TEST(Course, AUserWhoCancelsEndsTheJobAndItsMachines) {
  EXPECT_EQ(after_failed_bring({.ok = false, .canceled = true, .asked_to_end = true}), Step::hold);
  // Ctrl-C while the machines are being terminated does not keep them.
  EXPECT_EQ(walk({{.ending = true}, kOwn},
                 {{}, {.ok = false, .canceled = true, .asked_to_end = true}, {}}),
            (std::vector<Step>{Step::note_end, Step::terminate, Step::terminate, Step::conclude}));
  // The job's state is unknown, and the user wants no more of it.
  EXPECT_EQ(walk({{.working = true, .started = true}, kOwn},
                 {{.ok = false, .canceled = true, .asked_to_end = true, .started = true}})
                .back(),
            Step::bring_back);
}

TEST(Course, AUserWhoCancelsWhileMachinesAreRentedBeginsNothing) {
  const Seen canceled{.asked_to_end = true};
  EXPECT_EQ(walk({{}, kOwn}, {{}, canceled}).back(), Step::note_end);
  // The same between the loss of the machines and the next ones.
  EXPECT_EQ(walk({{.working = true}, kOwn},
                 {{.code = 143, .started = true}, {.taken = true}, {}, canceled})
                .back(),
            Step::note_end);
}

TEST(Course, CtrlCWhileOutputsOfATakenMachineComeBringsThemAgain) {
  const std::vector<Seen> to_save = {{.code = 143, .started = true}, {.taken = true}};
  std::vector<Seen> cut = to_save;
  cut.push_back({.asked_to_end = true, .whole = false});
  EXPECT_EQ(walk({{.working = true}, kOwn}, cut).back(), Step::bring_back);
  std::vector<Seen> whole = to_save;
  whole.push_back({.asked_to_end = true, .whole = true});
  EXPECT_EQ(walk({{.working = true}, kOwn}, whole).back(), Step::note_end);
}

TEST(Course, AStartedJobOfUnknownStateIsLeftToAnotherProcess) {
  EXPECT_EQ(
      walk({{.working = true, .started = true}, kOwn}, {{.ok = false, .started = true}}).back(),
      Step::leave);
}

TEST(Course, AnErrorBeforeTheJobBeganTerminatesTheMachines) {
  Course course({}, kOwn);
  EXPECT_EQ(course.first(), Step::check_begin);
  course.next({});
  EXPECT_EQ(course.next({.ok = false, .error_code = 2}), Step::note_end);
  course.next({});
  EXPECT_EQ(course.next({}), Step::conclude);
  EXPECT_EQ(course.code(), 1) << "exit code 2 promises that nothing was rented";
}

TEST(Course, AnEndingThatWasNotedIsOnlyFinished) {
  EXPECT_EQ(walk({{.ending = true, .started = true, .code = 7}, kOwn}, {{}, {}}),
            (std::vector<Step>{Step::note_end, Step::terminate, Step::conclude}));
}

}  // namespace
}  // namespace lockstep::jobs::rented
