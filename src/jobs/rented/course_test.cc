#include "jobs/rented/course.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

namespace lockstep::jobs::rented {
namespace {

constexpr int kAutostop = 3;  // hours; idle machines terminate themselves after that

// The fake world of one job: the journal, the machine, the outputs. Processes come and go.
struct World {
  // The journal, which outlives every process.
  CourseRecord record;
  bool known = true;  // the journal has the job
  bool intent = false;
  bool claimed = false;  // a lock of the kernel, which ends with its process
  // The machine and its job.
  bool alive = false;
  bool taken = false;  // preempted, while or before the job ran
  bool job_runs = false;
  bool job_ended = false;
  int job_code = 0;
  bool held = false;
  int hour = 0;   // the clock
  int heard = 0;  // the hour in which the job was heard last
  // What happened.
  int launches = 0;
  int attempts = 0;   // jobs that started
  int produced = 0;   // the attempt whose outputs lie on the machine; 0: none
  int brought = 0;    // the attempt whose outputs are here
  int successes = 0;  // attempts that recorded exit code 0
  int lost_successes = 0;
  bool acted = false;  // a process has brought outputs, or tried to, after a success
  int reboots = 0;
  int sleeps = 0;
  int double_starts = 0;
  int told = 0;
  int told_code = -1;
  bool hold_failed = false;       // the machine did not take its longer lease
  bool terminate_failed = false;  // the provider refused, and the user was told
  std::vector<std::string> wrong;

  void start_job() {
    job_runs = true;
    produced = ++attempts;
    // A reboot ends the job. Only other machines are a reason to begin again.
    if (attempts > launches) wrong.push_back("a job began again on the machines that it had");
  }
  void end_job(int code) {
    job_runs = false;
    job_ended = true;
    job_code = code;
    successes += code == 0 ? 1 : 0;
  }
  // The machine is gone, with the only copy of what lies on it.
  void lose_machine() {
    alive = job_runs = false;
    produced = 0;
  }
  // The provider takes the machine. If the job had ended, and no process had heard so and acted on
  // it, then the only record of its end goes too.
  void preempt() {
    lose_machine();
    taken = true;
    if (!acted) lost_successes = successes;
  }
  // A reboot ends the job, and keeps the disk.
  void reboot() {
    ++reboots;
    if (job_runs) end_job(137);
  }
  // The machine of the course is suspended. Job and machine go on meanwhile.
  void sleep(int hours, bool job_ends) {
    ++sleeps;
    hour += hours;
    if (job_runs && job_ends) end_job(0);
    // The lease of a held machine is longer: --hold.
    const bool idle = !job_runs && hours > kAutostop && !held;
    if (alive && idle) lose_machine();
  }
};

struct Killed {};

// Takes each step in the fake world. The driver may be killed before and after a step.
class Process {
 public:
  Process(World& world, std::mt19937& chance, bool foreign, double kills)
      : world_(world), chance_(chance), foreign_(foreign), kills_(kills) {}
  ~Process() {
    if (course_) world_.claimed = false;
  }
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  // Takes one step, or waits for the claim of another process. Returns whether the process goes on.
  bool step() {
    try {
      if (!course_) return claim();
      return advance();
    } catch (const Killed&) {
      return false;
    }
  }

 private:
  bool happens(double probability) { return std::bernoulli_distribution(probability)(chance_); }
  void maybe_die() {
    if (happens(kills_)) throw Killed();
  }
  void maybe_sleep() {
    if (happens(0.02)) world_.sleep(std::uniform_int_distribution(1, 12)(chance_), happens(0.5));
  }
  void wrong(const std::string& what) { world_.wrong.push_back(what); }

  // The record is read under the claim: before, it may be another process's past.
  bool claim() {
    if (world_.claimed) return true;
    if (!world_.known) return false;
    world_.claimed = true;
    finishes_ = world_.record.ending;
    course_.emplace(world_.record, CourseRules{.brings_back = true});
    step_ = course_->first();
    return true;
  }

  bool advance() {
    if (step_ == Step::quit || step_ == Step::leave) return false;
    if (++steps_ > 200) {
      wrong("the course never ends");
      return false;
    }
    maybe_sleep();
    maybe_die();
    // Between the look at the journal and its note another process may take steps.
    if (step_ == Step::rent && !std::exchange(looked_, true)) {
      saw_intent_ = world_.intent;
      return true;
    }
    looked_ = false;
    Seen seen = take(step_);
    if (step_ == Step::conclude) return false;
    maybe_die();
    seen.started = world_.record.started;
    seen.asked_to_end = asked_to_end_ = asked_to_end_ || happens(0.01);
    seen.asked_to_leave = asked_to_leave_ = asked_to_leave_ || happens(0.01);
    step_ = course_->next(seen);
    return true;
  }

  Seen take(Step step) {
    switch (step) {
      case Step::check_begin:
        return error(foreign_ && happens(0.05));
      case Step::rent:
        return rent();
      case Step::run:
        return run_job();
      case Step::ask_loss:
        return {.taken = was_taken()};
      case Step::save:
        return save();
      case Step::bring_back:
        world_.acted = world_.acted || (world_.job_ended && world_.job_code == 0);
        return bring(happens(0.1));
      case Step::note_success:
        world_.record.succeeded = true;
        return {};
      case Step::note_loss:
        world_.record = {};
        world_.job_runs = world_.job_ended = false;
        return {};
      case Step::hold:
        world_.held = world_.alive && happens(0.8);
        world_.hold_failed = !world_.held;
        return error(!world_.held);
      case Step::note_end:
        world_.record.ending = true;
        world_.record.code = course_->job_code();
        return {};
      case Step::terminate:
        return terminate();
      case Step::conclude:
        conclude();
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
    // Renting again first removes a machine that was preempted or has terminated itself.
    if (world_.intent && (world_.taken || !world_.alive)) {
      world_.lose_machine();
      world_.intent = saw_intent_ = false;
    }
    if (happens(0.1)) return error(true);  // the provider refused
    if (!saw_intent_) {
      if (world_.intent) wrong("two launches for one intent");
      ++world_.launches;
      world_.intent = world_.alive = true;
      world_.taken = false;
      world_.produced = 0;
      if (happens(0.1)) return error(true);  // the answer is lost
    }
    maybe_die();
    world_.record.working = true;
    world_.heard = world_.hour;
    return {};
  }

  Seen run_job() {
    if (!world_.alive) return {.code = 255, .gone = true};
    world_.heard = world_.hour;
    if (!world_.record.started && happens(0.1)) return {.code = 1};  // the job could not start
    if (!world_.record.started) {
      if (world_.successes > world_.lost_successes) wrong("a job that had succeeded ran again");
      world_.record.started = true;
      maybe_die();
      world_.start_job();
    } else if (!world_.job_runs && !world_.job_ended) {
      world_.start_job();  // the last process died before the job started: it starts now
    }
    maybe_die();
    if (happens(0.05)) return error(true);  // the host does not answer
    if (happens(0.05)) return {.code = 143, .left = true};
    maybe_sleep();
    if (!world_.alive) return {.code = 255, .gone = true};
    if (happens(0.05)) world_.reboot();
    if (!world_.job_ended && happens(0.25)) {
      // The provider's notice stops the job. At times the machine goes at once.
      const bool gone = happens(0.5);
      world_.end_job(143);
      if (gone) world_.preempt();
      world_.taken = true;
      return {.code = 143, .gone = gone};
    }
    if (!world_.job_ended) world_.end_job(happens(0.7) ? 0 : 3);
    world_.job_runs = false;
    return {.code = world_.job_code};
  }

  // Answers as CourseDriver::was_taken() does. A machine that is gone after a silence may have
  // terminated itself, idle after a job that succeeded.
  bool was_taken() {
    if (world_.taken) return true;
    if (world_.alive) return false;
    return world_.hour - world_.heard < kAutostop;
  }

  Seen save() {
    Seen seen = bring(world_.taken && happens(0.5));
    return {.whole = seen.ok};
  }

  Seen bring(bool fails) {
    if (!world_.alive) return {.ok = false, .gone = true};
    if (fails) return error(true);
    world_.brought = std::max(world_.brought, world_.produced);
    return {};
  }

  Seen terminate() {
    if (!asked_to_end_ && !finishes_ && world_.job_runs)
      wrong("a machine was terminated under a running job");
    // Two exceptions. A preempted machine goes in any case: the course asks for the outputs once,
    // at the notice. A machine that could not be held has no lease to end it: the course gives up
    // the outputs rather than leave the bill running, and tells the job as failed.
    if (world_.produced > world_.brought && !world_.taken && !world_.hold_failed)
      wrong("a machine was terminated with the only copy of the outputs");
    world_.terminate_failed = happens(0.1);
    if (world_.terminate_failed) return error(true);
    world_.lose_machine();
    world_.intent = false;
    return {};
  }

  void conclude() {
    ++world_.told;
    world_.told_code = course_->code();
    world_.known = false;
  }

  World& world_;
  std::mt19937& chance_;
  bool foreign_;           // without the environment of the job's command
  bool finishes_ = false;  // another process has decided that the job is over
  bool asked_to_end_ = false;
  bool asked_to_leave_ = false;
  double kills_;
  std::optional<Course> course_;  // made under the claim
  Step step_ = Step::quit;
  int steps_ = 0;
  bool looked_ = false;  // the first half of a launch is done
  bool saw_intent_ = false;
};

// Runs one job to its end: first the process that the command started, then further processes. At
// times two processes begin at once, and their steps interleave as far as the claim allows. Each
// process may be killed anywhere, except the last.
World simulate(unsigned seed) {
  std::mt19937 chance(seed);
  World world;
  const auto happens = [&](double often) { return std::bernoulli_distribution(often)(chance); };
  constexpr int kProcesses = 12;
  for (int number = 0; number < kProcesses && world.known; ++number) {
    // Without a process the job may end, the machine may reboot, and it may be preempted.
    if (number > 0 && world.job_runs && happens(0.5)) world.end_job(0);
    if (number > 0 && world.alive && happens(0.1)) world.reboot();
    if (number > 0 && world.alive && happens(0.1)) world.preempt();
    const double kills = number + 1 == kProcesses ? 0 : 0.06;
    std::vector<std::unique_ptr<Process>> processes;
    const int count = happens(0.3) ? 2 : 1;
    processes.reserve(2);
    world.double_starts += count - 1;
    for (int i = 0; i < count; ++i)
      processes.push_back(std::make_unique<Process>(world, chance, number > 0, kills));
    while (!processes.empty()) {
      const auto each = processes.begin() + (happens(0.5) ? 0 : std::ssize(processes) - 1);
      if (!(*each)->step()) processes.erase(each);
    }
  }
  return world;
}

// The promises for a job whose end was told.
void expect_good_end(const World& world) {
  // Exceptions: a held machine has a lease that ends it. After a failed termination the user is
  // told so, and the guard terminates the machine.
  if (world.alive) {
    EXPECT_TRUE(world.held || world.terminate_failed) << "a machine was left";
    EXPECT_NE(world.told_code, 0) << "a success was told, and a machine was left";
  }
  // Whatever the exit code: the outputs on a machine are here too, or the machine is held for them.
  // terminate() names the exceptions.
  if (world.produced > world.brought) {
    EXPECT_TRUE(world.held || world.taken || world.hold_failed)
        << "outputs are neither here nor held";
  }
  if (world.told_code != 0) return;
  EXPECT_GT(world.successes, 0) << "told as success, and none was recorded";
  EXPECT_EQ(world.brought, world.attempts) << "outputs are not here";
}

TEST(CourseRandom, TenThousandJobsKeepTheirPromises) {
  int ended = 0;
  int succeeded = 0;
  int failed_with_outputs = 0;
  int reboots = 0;
  int sleeps = 0;
  int double_starts = 0;
  for (unsigned seed = 0; seed < 10'000; ++seed) {
    SCOPED_TRACE(seed);
    const World world = simulate(seed);
    for (const std::string& what : world.wrong)
      ADD_FAILURE() << what;
    EXPECT_EQ(world.told, world.known ? 0 : 1) << "each end is told once";
    if (world.told > 0) expect_good_end(world);
    if (::testing::Test::HasFailure()) return;
    ended += world.told;
    succeeded += world.told_code == 0 ? 1 : 0;
    failed_with_outputs += world.told_code > 0 && world.brought > 0 ? 1 : 0;
    reboots += world.reboots;
    sleeps += world.sleeps;
    double_starts += world.double_starts;
  }
  EXPECT_GT(ended, 9'000);
  EXPECT_GT(succeeded, 3'000);
  EXPECT_GT(failed_with_outputs, 1'000);
  EXPECT_GT(std::min({reboots, sleeps, double_starts}), 1'000);
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
            (std::vector<Step>{Step::run, Step::note_success, Step::bring_back, Step::note_end,
                               Step::terminate}));
}

TEST(Course, ANotedSuccessIsNotRepeated) {
  const CourseRecord noted{.working = true, .started = true, .succeeded = true};
  EXPECT_EQ(walk({noted, kOwn}, {{.ok = false, .gone = true}, {}, {}}),
            (std::vector<Step>{Step::bring_back, Step::note_end, Step::terminate, Step::conclude}));
  EXPECT_EQ(walk({noted, {}}, {{}}), (std::vector<Step>{Step::note_end, Step::terminate}));
  EXPECT_EQ(walk({{.working = true}, kOwn},
                 {{.asked_to_leave = true, .started = true}, {.asked_to_leave = true}}),
            (std::vector<Step>{Step::run, Step::note_success, Step::leave}));
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
  course.next({});
  EXPECT_EQ(course.next({.ok = false}), Step::hold);
  EXPECT_EQ(course.next({}), Step::conclude);
  EXPECT_EQ(course.code(), 1) << "a job without its outputs did not succeed";
}

// Returns the step after the outputs of a job that ended well could not be brought.
Step after_failed_bring(const Seen& seen) {
  return walk({{.working = true}, kOwn}, {{.started = true}, {}, seen}).back();
}

TEST(Course, AJobWhoseOutputsAreLostDidNotSucceed) {
  Course course({.working = true}, kOwn);
  course.first();
  course.next({.started = true});
  course.next({});
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
