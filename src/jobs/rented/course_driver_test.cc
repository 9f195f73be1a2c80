#include "jobs/rented/course_driver.h"

#include <gtest/gtest.h>

#include <signal.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <deque>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace lockstep::jobs::rented {
namespace {

using Stage = cloud::RentedJob::Stage;
using Calls = std::vector<std::string>;
using std::chrono::seconds;

// The calls of the driver, and the results of these calls.
struct Scene {
  Calls calls;
  std::map<std::string, std::deque<Error>> failures;  // of the next calls of this name
  std::map<std::string, int> signals;                 // come during the next call of this name
  std::deque<int> pending;

  Status called(const std::string& call) {
    calls.push_back(call);
    if (const auto signal = signals.find(call); signal != signals.end()) {
      pending.push_back(signal->second);
      signals.erase(signal);
    }
    std::deque<Error>& failing = failures[call];
    if (failing.empty()) return {};
    Error why = std::move(failing.front());
    failing.pop_front();
    return Failure(std::move(why));
  }
};

class FakeMachines : public CourseMachines {
 public:
  explicit FakeMachines(Scene& scene) : CourseMachines(one_machine()), scene_(scene) {}

  static cloud::Rental one_machine() {
    cloud::Rental rental{.id = "rental", .cluster = "lab", .owner = "me"};
    cloud::Attempt attempt{.offer = {}, .machines = {{.machine = {.id = "i-1"}}}};
    attempt.offer.spot = true;
    attempt.state = cloud::Attempt::State::running;
    attempt.machines[0].machine.state = cloud::Machine::State::running;
    attempt.machines[0].machine.address = "192.0.2.1";
    rental.attempts.push_back(attempt);
    return rental;
  }
  cloud::Rental& own() { return rental_; }
  void set_spot(bool spot) { rental_.attempts[0].offer.spot = spot; }
  void take_away(bool by_provider = true) {
    cloud::Machine& machine = rental_.attempts[0].machines[0].machine;
    machine.state = cloud::Machine::State::gone;
    machine.taken = by_provider;
  }

  std::int64_t now_ms() const override { return now; }
  int take_signal() override {
    if (scene_.pending.empty()) return 0;
    const int signal = scene_.pending.front();
    scene_.pending.pop_front();
    return signal;
  }
  Status lock() override { return scene_.called("lock"); }
  void unlock() override { scene_.calls.emplace_back("unlock"); }
  Status rent(bool on_demand, std::optional<std::chrono::milliseconds> wait) override {
    waited = wait;
    LOCKSTEP_TRY(scene_.called(on_demand ? "rent on demand" : "rent"));
    rental_.attempts = one_machine().attempts;
    lease = {};
    return {};
  }
  Status drop_lost() override { return scene_.called("drop"); }
  Status give_back() override { return scene_.called("give back"); }
  std::optional<cloud::Rental> look() override {
    return answers ? std::optional(rental_) : std::nullopt;
  }
  Result<std::vector<hosts::HostPlace>> places() override {
    return std::vector<hosts::HostPlace>{{.name = "lab-0", .target = {.host = "192.0.2.1"}}};
  }
  Result<std::vector<rent::LeaseAnswer>> leases() override {
    LOCKSTEP_TRY(scene_.called("leases"));
    return std::vector<rent::LeaseAnswer>{lease};
  }
  Status hold(std::int64_t /*seconds*/) override { return scene_.called("hold"); }

  std::int64_t now = 1'000'000;
  bool answers = true;  // the provider
  rent::LeaseAnswer lease;
  std::optional<std::chrono::milliseconds> waited;

 private:
  Scene& scene_;
};

class FakeJob : public CourseJob {
 public:
  explicit FakeJob(Scene& scene) : scene_(scene) {}

  Result<std::optional<AttemptEnd>> follow(const std::string& id) override {
    LOCKSTEP_TRY(scene_.called("follow " + id));
    if (!began) return std::optional<AttemptEnd>();
    return std::optional<AttemptEnd>(next(id));
  }
  AttemptEnd begin(int number, const Events& events) override {
    const std::string id = "job-" + std::to_string(number);
    if (const Status done = scene_.called("begin " + std::to_string(number)); !done)
      return {.code = 2, .job = {}, .why = done.error().message};
    EXPECT_TRUE(events.recorded(id));
    if (!refusal.empty()) return {.code = 1, .job = {}, .why = refusal};
    events.started({"ahead"});
    return next(id);
  }
  Status bring_outputs(const std::vector<hosts::HostPlace>& from) override {
    EXPECT_EQ(from.at(0).name, "lab-0");
    return scene_.called("bring");
  }
  Status send_outputs(const std::vector<hosts::HostPlace>& to) override {
    EXPECT_EQ(to.size(), 1U);
    return scene_.called("send");
  }

  // How the next attempts end; then they succeed. Called when an attempt ends.
  std::deque<std::pair<AttemptEnd, std::function<void()>>> ends;
  bool began = true;    // the attempt of an earlier process did
  std::string refusal;  // of the hosts, for attempts with a record

 private:
  AttemptEnd next(const std::string& id) {
    if (ends.empty()) return {.job = id};
    auto [end, happens] = std::move(ends.front());
    ends.pop_front();
    if (happens) happens();
    end.job = id;
    return end;
  }
  Scene& scene_;
};

class CourseDriverTest : public ::testing::Test {
 protected:
  CourseDriverTest() {
    std::string name = ::testing::TempDir() + "courseXXXXXX";
    folder_ = mkdtemp(name.data());
    journal_.emplace(*cloud::Journal::open(folder_));
    keep(Stage::working);
  }
  ~CourseDriverTest() override { std::filesystem::remove_all(folder_); }

  void keep(Stage stage) {
    cloud::RentedJob job{.rental = "rental", .cluster = "lab", .words = {}, .folder = "/home/me"};
    job.stage = stage;
    job.began_ms = 990'000;
    keep(job);
  }
  void keep(const cloud::RentedJob& job) { EXPECT_TRUE(journal_->keep_job(job)); }
  cloud::RentedJob record() {
    const auto jobs = journal_->jobs();
    return jobs && !jobs->empty() ? jobs->front() : cloud::RentedJob{};
  }
  // Runs one process of the course from the record.
  int run() {
    scene_.calls.clear();
    return CourseDriver(
               *journal_, record(), machines_, job_,
               {.back = back_,
                .rows = rows_,
                .wait = wait_,
                .cannot_begin = cannot_begin_,
                .tell = [this](const std::string& text) { told_.push_back(text); },
                .tell_error = [this](const Error& error) { told_.push_back(error.message); }})
        .run();
  }
  void attempt_ends(AttemptEnd end, std::function<void()> happens = {}) {
    job_.ends.emplace_back(std::move(end), std::move(happens));
  }
  // The provider takes the machine away, and the attempt's follower notices.
  void attempt_is_lost() {
    attempt_ends({.code = 255, .job = {}, .gone = true}, [this] { machines_.take_away(); });
  }
  // The machine saves at a notice, and is still there.
  void attempt_gets_notice() {
    attempt_ends({.code = 143, .job = {}}, [this] { machines_.lease.state.notice = "terminate"; });
  }
  bool was_told(const std::string& part) const {
    return std::any_of(told_.begin(), told_.end(), [&](const std::string& each) {
      return each.find(part) != std::string::npos;
    });
  }
  static Error refused(const std::string& why) { return {Errc::unavailable, why, {}, 0}; }
  static Error stopped(int signal) { return {Errc::canceled, "stopped", {}, signal}; }

  std::string folder_;
  std::optional<cloud::Journal> journal_;
  Scene scene_;
  FakeMachines machines_{scene_};
  FakeJob job_{scene_};
  std::vector<std::string> back_ = {"out"};
  std::size_t rows_ = 0;
  std::optional<std::chrono::milliseconds> wait_;
  std::optional<Error> cannot_begin_;
  std::vector<std::string> told_;
};

TEST_F(CourseDriverTest, ASuccessfulJobBringsItsOutputsAndEndsItsMachines) {
  keep(Stage::renting);
  EXPECT_EQ(run(), 0);
  EXPECT_EQ(scene_.calls,
            (Calls{"lock", "rent", "unlock", "begin 1", "bring", "lock", "give back"}));
  EXPECT_EQ(record().stage, Stage::ended);
  EXPECT_EQ(record().code, 0);
  EXPECT_EQ(record().job, "job-1");
  EXPECT_EQ(record().ahead, std::vector<std::string>{"ahead"});
  EXPECT_EQ(record().note, "outputs in out, 0.00 USD");
}

// The process ends before the outputs are here, and then the machine is preempted.
TEST_F(CourseDriverTest, ASuccessIsNotedBeforeItsOutputsCome) {
  scene_.failures["bring"] = {stopped(SIGTERM)};
  run();
  EXPECT_TRUE(record().succeeded);
  attempt_is_lost();
  machines_.take_away();
  EXPECT_EQ(run(), 1) << "a job without its outputs did not succeed";
  EXPECT_EQ(scene_.calls, (Calls{"lock", "give back"})) << "the job began again";
  EXPECT_TRUE(was_told("its outputs are not here: its machine was gone before"));
}

TEST_F(CourseDriverTest, AFailedJobOnHealthyMachinesEndsWithItsCode) {
  attempt_ends({.code = 7, .job = {}});
  EXPECT_EQ(run(), 7);
  EXPECT_EQ(scene_.calls, (Calls{"begin 1", "leases", "bring", "lock", "give back"}));
  EXPECT_EQ(record().code, 7);
}

TEST_F(CourseDriverTest, ACanceledJobIsNotAskedAboutALoss) {
  attempt_ends({.code = 143, .job = {}, .canceled = true}, [this] { machines_.take_away(); });
  EXPECT_EQ(run(), 143);
  EXPECT_EQ(scene_.calls, (Calls{"begin 1", "bring", "lock", "give back"}));
}

TEST_F(CourseDriverTest, AJobThatCannotBeginEndsWithoutOutputs) {
  scene_.failures["begin 1"] = {refused("no room on /home")};
  EXPECT_EQ(run(), 1) << "2 would promise that nothing was rented";
  EXPECT_EQ(scene_.calls, (Calls{"begin 1", "leases", "lock", "give back"}));
  EXPECT_EQ(record().note, "it did not begin: no room on /home, 0.00 USD");
}

TEST_F(CourseDriverTest, AJobBeginsAgainOnOtherMachinesWithItsOutputs) {
  attempt_gets_notice();
  attempt_ends({}, [this] { EXPECT_EQ(record().losses, 1); });
  EXPECT_EQ(run(), 0);
  EXPECT_EQ(scene_.calls, (Calls{"begin 1", "leases", "bring", "lock", "drop", "rent", "unlock",
                                 "send", "begin 2", "bring", "lock", "give back"}));
  EXPECT_EQ(told_.back(),
            "'lab' was taken away by its provider; its job goes on elsewhere (attempt 2)");
  EXPECT_EQ(record().job, "job-2");
}

TEST_F(CourseDriverTest, AnAttemptThatTheHostsRefuseIsNotTheJob) {
  attempt_gets_notice();
  job_.ends.back().second = [this] {
    machines_.lease.state.notice = "terminate";
    job_.refusal = "no room on /home";
  };
  EXPECT_EQ(run(), 1);
  EXPECT_EQ(record().losses, 1);
  EXPECT_EQ(record().job, "") << "viewers would look for it on the machines of attempt 1";
}

TEST_F(CourseDriverTest, OutputsOfAMachineThatIsGoneAreNotSentAlong) {
  attempt_is_lost();
  EXPECT_EQ(run(), 0);
  EXPECT_EQ(scene_.calls, (Calls{"begin 1", "lock", "drop", "rent", "unlock", "begin 2", "bring",
                                 "lock", "give back"}));
  EXPECT_TRUE(was_told("was not brought back: its machine is gone"));
}

TEST_F(CourseDriverTest, ASilentMachineIsLostOnceItsProviderSaysSo) {
  machines_.lease.error = "no answer";
  attempt_ends({.code = 255, .job = {}});
  EXPECT_EQ(run(), 255) << "the provider still has it";
  keep(Stage::working);
  attempt_is_lost();
  EXPECT_EQ(run(), 0);
}

TEST_F(CourseDriverTest, AfterThreeLossesAPreferenceForSpotIsOver) {
  machines_.own().wish.spot = cloud::SpotWish::prefer;
  for (int loss = 0; loss < 3; ++loss)
    attempt_is_lost();
  EXPECT_EQ(run(), 0);
  EXPECT_EQ(std::count(scene_.calls.begin(), scene_.calls.end(), "rent"), 2);
  EXPECT_EQ(std::count(scene_.calls.begin(), scene_.calls.end(), "rent on demand"), 1);
}

TEST_F(CourseDriverTest, AMachineOnDemandIsReplacedFiveTimes) {
  cloud::RentedJob job = record();
  job.losses = 4;
  keep(job);
  machines_.set_spot(false);
  attempt_is_lost();
  attempt_is_lost();
  // The fake rents spot machines.
  job_.ends.front().second = [this] { machines_.take_away(false); };
  job_.ends.back().second = [this] {
    machines_.set_spot(false);
    machines_.take_away(false);
  };
  EXPECT_EQ(run(), 255);
  EXPECT_TRUE(was_told("'lab' has lost a machine"));
  EXPECT_EQ(record().losses, 5);
  EXPECT_TRUE(was_told("its outputs are not here: its machine was gone before"));
}

// The machines ended as idle while this computer slept: the job had ended before.
TEST_F(CourseDriverTest, AJobThatMayBeDoneDoesNotBeginAgain) {
  machines_.set_spot(false);
  const auto goes = [this] { machines_.take_away(false); };
  attempt_ends({.code = 255, .job = {}, .gone = true, .silent = seconds(600)}, goes);
  EXPECT_EQ(run(), 255);
  EXPECT_TRUE(was_told("whether it was done is not known, and it is not begun again"));
  EXPECT_EQ(record().losses, 0);
  EXPECT_TRUE(record().note.starts_with("its machines have ended while nothing was heard"));
}

TEST_F(CourseDriverTest, AMachineThatWasHeardLatelyOrTakenDidNotEndAsIdle) {
  attempt_ends({.code = 255, .job = {}, .gone = true, .silent = seconds(599)},
               [this] { machines_.take_away(false); });
  attempt_ends({.code = 255, .job = {}, .gone = true, .silent = seconds(3600)},
               [this] { machines_.take_away(true); });
  EXPECT_EQ(run(), 0);
  EXPECT_EQ(record().losses, 2);
}

// A machine may have ended as idle while other machines still worked through the rows.
TEST_F(CourseDriverTest, ASweepWhoseRowsHaveAllEndedDoesNotBeginAgain) {
  attempt_ends({.code = 1, .job = {}, .rows_ended = true}, [this] { machines_.take_away(false); });
  EXPECT_EQ(run(), 1);
  EXPECT_EQ(scene_.calls, (Calls{"begin 1", "bring", "lock", "give back"}));
  EXPECT_EQ(record().losses, 0);
}

TEST_F(CourseDriverTest, ASweepSaysThatAllRowsBeginAgain) {
  rows_ = 40;
  attempt_gets_notice();
  EXPECT_EQ(run(), 0);
  EXPECT_TRUE(was_told("its job goes on elsewhere (attempt 2); all 40 rows begin again"));
}

TEST_F(CourseDriverTest, NothingBeginsAgainAfterTheEndOfTheLease) {
  machines_.own().ends_ms = machines_.now;
  attempt_is_lost();
  EXPECT_EQ(run(), 255);
  EXPECT_EQ(record().losses, 0);
}

TEST_F(CourseDriverTest, RefusedMachinesEndTheJob) {
  attempt_is_lost();
  scene_.failures["rent"] = {refused("no room anywhere")};
  EXPECT_EQ(run(), 1);
  EXPECT_EQ(scene_.calls,
            (Calls{"begin 1", "lock", "drop", "rent", "unlock", "lock", "give back"}));
  EXPECT_TRUE(was_told("no room anywhere"));
  EXPECT_EQ(record().stage, Stage::ended);
  EXPECT_EQ(record().note, "no room anywhere, 0.00 USD");
}

TEST_F(CourseDriverTest, MachinesThatTheUserEndedAreNotReplaced) {
  attempt_is_lost();
  job_.ends.back().second = [this] {
    machines_.take_away();
    machines_.own().wanted = false;
  };
  EXPECT_EQ(run(), 255);
  EXPECT_EQ(scene_.calls, (Calls{"begin 1", "lock", "unlock", "lock", "give back"}));
  EXPECT_FALSE(was_told("is being terminated")) << "the user knows";
}

TEST_F(CourseDriverTest, MachinesThatAnotherProcessTerminatedAreNamedInTheEnd) {
  attempt_ends({}, [this] { machines_.own().closed_ms = 5; });
  EXPECT_EQ(run(), 0);
  EXPECT_EQ(scene_.calls, (Calls{"begin 1", "bring", "lock"}));
  EXPECT_EQ(record().note, "outputs in out, terminated by another lockstep, 0.00 USD");
}

TEST_F(CourseDriverTest, AJobThatWasDroppedDoesNotComeBack) {
  attempt_ends({}, [this] { EXPECT_TRUE(journal_->drop_job("rental")); });
  EXPECT_EQ(run(), 0);
  EXPECT_FALSE(*journal_->has_job("rental"));
}

TEST_F(CourseDriverTest, LostOutputsHoldTheMachineAndFailTheJob) {
  machines_.own().terms.hold_s = 1800;
  scene_.failures["bring"] = {refused("the disk is full")};
  EXPECT_EQ(run(), 1);
  EXPECT_EQ(scene_.calls, (Calls{"begin 1", "bring", "hold"})) << "no give back";
  EXPECT_TRUE(was_told("outputs are not here: the disk is full; 'lab' is held for 30 min"));
  EXPECT_TRUE(was_told("lockstep sync lab --back PATH brings them"));
  EXPECT_EQ(record().stage, Stage::ended);
  EXPECT_EQ(record().code, 1);
}

TEST_F(CourseDriverTest, AClientIsToldWhereTheOutputsAreHeld) {
  cloud::RentedJob job = record();
  job.client = "laptop";
  keep(job);
  scene_.failures["bring"] = {refused("the disk is full")};
  EXPECT_EQ(run(), 1);
  EXPECT_TRUE(was_told("in /home/me on "));
}

TEST_F(CourseDriverTest, AMachineThatCannotBeHeldIsTerminated) {
  scene_.failures["bring"] = {refused("no route")};
  scene_.failures["hold"] = {refused("no route")};
  EXPECT_EQ(run(), 1);
  EXPECT_EQ(scene_.calls, (Calls{"begin 1", "bring", "hold", "lock", "give back"}));
  EXPECT_EQ(record().note, "its outputs are not here: no route, 0.00 USD");
}

TEST_F(CourseDriverTest, AJobWithoutOutputsBringsNothing) {
  back_.clear();
  attempt_gets_notice();
  EXPECT_EQ(run(), 0);
  EXPECT_EQ(std::count(scene_.calls.begin(), scene_.calls.end(), "bring"), 0);
  EXPECT_EQ(std::count(scene_.calls.begin(), scene_.calls.end(), "send"), 0);
}

TEST_F(CourseDriverTest, OutputsThatCannotBeSentEndTheJob) {
  attempt_gets_notice();
  scene_.failures["send"] = {refused("no route")};
  EXPECT_EQ(run(), 1);
  EXPECT_EQ(std::count(scene_.calls.begin(), scene_.calls.end(), "begin 2"), 0);
  EXPECT_TRUE(was_told("no route"));
}

// A user cancels at any moment: nothing begins any more, and the machines end.
TEST_F(CourseDriverTest, CtrlCEndsTheJobBetweenAllSteps) {
  for (const char* moment : {"lock", "rent", "begin 1", "bring", "drop"}) {
    SCOPED_TRACE(moment);
    keep(Stage::renting);
    machines_.own() = FakeMachines::one_machine();
    job_.ends.clear();
    attempt_gets_notice();
    scene_.signals = {{moment, SIGINT}};
    run();
    EXPECT_EQ(std::count(scene_.calls.begin(), scene_.calls.end(), "begin 2"), 0);
    EXPECT_EQ(scene_.calls.back(), "give back");
    EXPECT_EQ(record().stage, Stage::ended);
  }
}

TEST_F(CourseDriverTest, CtrlCDuringARequestEndsTheRenting) {
  keep(Stage::renting);
  scene_.failures["rent"] = {stopped(0)};
  scene_.signals = {{"rent", SIGINT}};
  EXPECT_EQ(run(), 128 + SIGINT);
  EXPECT_EQ(scene_.calls, (Calls{"lock", "rent", "unlock", "lock", "give back"}));
}

TEST_F(CourseDriverTest, CtrlCWhileMachinesEndDoesNotKeepThem) {
  scene_.failures["give back"] = {stopped(SIGINT)};
  EXPECT_EQ(run(), 0);
  EXPECT_EQ(scene_.calls, (Calls{"begin 1", "bring", "lock", "give back", "lock", "give back"}));
}

// This process is to end, and the job is not: the next process goes on from the record.
TEST_F(CourseDriverTest, AProcessThatIsAskedToEndLeavesTheJobToAnother) {
  keep(Stage::renting);
  scene_.signals = {{"rent", SIGTERM}};
  run();
  EXPECT_EQ(scene_.calls, (Calls{"lock", "rent", "unlock"}));
  EXPECT_EQ(record().stage, Stage::working);
  attempt_ends({.code = 143, .job = {}, .left = true});
  EXPECT_EQ(run(), 143);
  EXPECT_EQ(scene_.calls, (Calls{"begin 1"}));
  EXPECT_EQ(record().job, "job-1");
  attempt_ends({}, [this] { scene_.pending.push_back(SIGTERM); });
  run();
  EXPECT_EQ(scene_.calls, (Calls{"follow job-1"}));
  EXPECT_EQ(run(), 0);
  // The success is noted, so only its outputs are missing.
  EXPECT_EQ(scene_.calls, (Calls{"bring", "lock", "give back"}));
}

TEST_F(CourseDriverTest, AnAttemptThatNeverBeganBeginsNow) {
  cloud::RentedJob job = record();
  job.job = "half-told";
  keep(job);
  job_.began = false;
  EXPECT_EQ(run(), 0);
  EXPECT_EQ(scene_.calls, (Calls{"follow half-told", "begin 1", "bring", "lock", "give back"}));
}

TEST_F(CourseDriverTest, ASilentJobIsLeftToAnotherProcess) {
  cloud::RentedJob job = record();
  job.job = "runs";
  keep(job);
  scene_.failures["follow runs"] = {refused("no answer")};
  EXPECT_EQ(run(), 1);
  EXPECT_EQ(scene_.calls, (Calls{"follow runs"}));
  EXPECT_EQ(record().stage, Stage::working);
}

TEST_F(CourseDriverTest, ANotedEndOnlyTerminates) {
  cloud::RentedJob job = record();
  job.stage = Stage::ending;
  job.code = 9;
  job.note = "outputs in out";
  keep(job);
  EXPECT_EQ(run(), 9);
  EXPECT_EQ(scene_.calls, (Calls{"lock", "give back"}));
  EXPECT_EQ(record().note, "outputs in out, 0.00 USD");
}

TEST_F(CourseDriverTest, MachinesThatCannotBeTerminatedFailTheJob) {
  scene_.failures["give back"] = {refused("503")};
  EXPECT_EQ(run(), 1);
  EXPECT_TRUE(was_told("503"));
  EXPECT_EQ(record().stage, Stage::ended);
}

TEST_F(CourseDriverTest, AJobThatThisProcessMustNotBeginEndsItsMachines) {
  keep(Stage::renting);
  cannot_begin_ = lost_variables({"TOKEN"}, {"A=1", "HOME"});
  ASSERT_TRUE(cannot_begin_);
  EXPECT_EQ(run(), 1);
  EXPECT_EQ(scene_.calls, (Calls{"lock", "give back"}));
  EXPECT_TRUE(was_told("its job does not begin again: TOKEN, HOME was in the environment"));
  EXPECT_FALSE(lost_variables({}, {"A=1"}));
  cloud::RentedJob job = record();
  job.stage = Stage::working;
  job.job = "runs";
  keep(job);
  EXPECT_EQ(run(), 0) << "a running job is followed all the same";
}

TEST_F(CourseDriverTest, TheTimeOfWaitCountsFromTheStartOfTheJob) {
  keep(Stage::renting);
  wait_ = seconds(60);
  EXPECT_EQ(run(), 0);
  EXPECT_EQ(machines_.waited, seconds(50));
  keep(Stage::working);
  attempt_is_lost();
  EXPECT_EQ(run(), 0);
  EXPECT_EQ(machines_.waited, seconds(60)) << "a loss starts it again";
}

}  // namespace
}  // namespace lockstep::jobs::rented
