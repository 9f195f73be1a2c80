#include "jobs/rented/rented_job.h"

#include "base/error_testing.h"

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <signal.h>

#include <deque>
#include <string>
#include <utility>
#include <vector>

namespace lockstep::jobs::rented {
namespace {

using Stage = cloud::RentedJob::Stage;

// Answers for the machines of the present attempt.
class FakeAttempt : public Job {
 public:
  FakeAttempt(KnownJob record, std::vector<std::string>& calls, std::deque<Followed>& ends,
              std::function<void()>& meanwhile)
      : Job(std::move(record)), calls_(calls), ends_(ends), meanwhile_(meanwhile) {}
  Result<JobStatus> status() override {
    calls_.emplace_back("status");
    return JobStatus{.state = JobState::running};
  }
  Result<std::vector<status::EventAnswer>> events(std::int64_t /*after*/) override {
    calls_.push_back("events of " + record_.nodes.at(0).name);
    return std::vector<status::EventAnswer>();
  }
  Result<Explanation> why() override {
    calls_.emplace_back("why");
    return explain_job(record_, {.state = JobState::running}, nullptr);
  }
  Result<ProfileAnswers> profile(const ProfileRequest& request) override {
    calls_.push_back(fmt::format("profile {}", request.query.id));
    return ProfileAnswers{.agents = {{.host = 0}}};
  }
  Status bring_trace(const TraceThere& trace, const std::string& to,
                     const std::function<Status()>& /*meanwhile*/) override {
    calls_.push_back(fmt::format("bring {} to {}", trace.rank, to));
    return {};
  }
  Result<Followed> follow(const FollowOptions& options) override {
    calls_.push_back("follow on " + record_.nodes.at(0).name);
    if (options.lines) calls_.back() += fmt::format(" from {} lines", *options.lines);
    if (meanwhile_) meanwhile_();
    gone = options.gone && options.gone();
    if (ends_.empty()) return Followed{.status = {.state = JobState::succeeded, .code = 0}};
    Followed end = std::move(ends_.front());
    ends_.pop_front();
    return end;
  }
  Result<JobStatus> cancel() override {
    calls_.emplace_back("cancel");
    return JobStatus{.state = JobState::canceled};
  }
  Result<Resumed> resume(const std::vector<std::string>& /*env*/) override {
    calls_.emplace_back("resume");
    return Resumed{};
  }
  static inline bool gone = false;  // the answer to the last follower's question

 private:
  std::vector<std::string>& calls_;
  std::deque<Followed>& ends_;
  std::function<void()>& meanwhile_;
};

class RentedJobTest : public ::testing::Test {
 protected:
  RentedJobTest() {
    course_.rental = "rental";
    course_.cluster = "lab";
    course_.run_id = "aaaa1111-0000-4000-8000-000000000000";
    course_.job = "aaaa1111";
    course_.stage = Stage::working;
    record_ = {.id = "aaaa1111", .name = "train", .place = "lab", .command = "train.py"};
    on("old");
  }
  RentedJob job() {
    return {record_,
            {.attempt =
                 [this](KnownJob record) {
                   return std::make_unique<FakeAttempt>(std::move(record), calls_, ends_,
                                                        meanwhile_);
                 },
             .courses =
                 [this] {
                   return told_ ? std::vector<cloud::RentedJob>()
                                : std::vector<cloud::RentedJob>{course_};
                 },
             .rental = [](const cloud::RentedJob&) { return std::nullopt; },
             .find =
                 [this](const std::string&) {
                   return recorded_ ? Result<KnownJob>(record_) : fail(Errc::not_found, "no job");
                 },
             .is_followed = [this](const std::string&) { return followed_; },
             .interrupt =
                 [this](const std::string& rental) {
                   calls_.push_back("interrupt " + rental);
                   return followed_;
                 },
             .pause = [this](std::chrono::milliseconds) { return pause(); }}};
  }
  // Each pause lets the next thing happen.
  Status pause() {
    ++pauses_;
    if (happens_.empty()) return {};
    const auto next = std::move(happens_.front());
    happens_.pop_front();
    return next();
  }
  void then(std::function<void()> what) {
    happens_.emplace_back([what = std::move(what)] {
      what();
      return Status();
    });
  }
  void on(const std::string& host) {
    record_.nodes = {{.name = host, .target = {.host = host}}};
    record_.status = {.state = JobState::running};
  }
  void lose() {
    course_.stage = Stage::lost;
    ++course_.losses;
    course_.job.clear();
  }
  void begin_again() {
    course_.stage = Stage::working;
    course_.job = "aaaa1111";
    on("new");
  }
  void end(int code) {
    course_.stage = Stage::ended;
    course_.code = code;
  }

  cloud::RentedJob course_;
  bool told_ = false;  // the record of the course is gone
  bool followed_ = true;
  KnownJob record_;
  bool recorded_ = true;
  std::vector<std::string> calls_;
  std::deque<Followed> ends_;  // of the attempts
  std::function<void()> meanwhile_;
  std::deque<std::function<Status()>> happens_;
  int pauses_ = 0;
};

TEST_F(RentedJobTest, MachinesAreAskedOnlyWhileTheyHaveTheJob) {
  EXPECT_EQ(job().status()->state, JobState::running);
  EXPECT_EQ(calls_, std::vector<std::string>{"status"});
  lose();
  EXPECT_EQ(job().status()->state, JobState::restarting);
  begin_again();
  course_.back = {"out"};
  record_.status = {.state = JobState::failed, .code = 3};
  EXPECT_EQ(job().status()->state, JobState::saving);
  EXPECT_EQ(calls_.size(), 1U);
}

// One command asks about all attempts.
TEST_F(RentedJobTest, TheEventsOfTheNextAttemptAreThoseOfItsMachines) {
  RentedJob asked = job();
  EXPECT_TRUE(asked.events(0));
  lose();
  EXPECT_TRUE(asked.events(0)->empty());
  EXPECT_EQ(asked.status()->state, JobState::restarting);
  begin_again();
  record_.status = {.state = JobState::starting};
  EXPECT_TRUE(asked.events(0)->empty());
  EXPECT_EQ(asked.status()->state, JobState::starting);
  EXPECT_EQ(calls_, std::vector<std::string>{"events of old"});
  on("new");
  EXPECT_TRUE(asked.events(0));
  EXPECT_EQ(calls_.back(), "events of new");
}

TEST_F(RentedJobTest, AJobMayBeginAgainUntilItsCourseEnds) {
  RentedJob asked = job();
  EXPECT_TRUE(asked.may_begin_again()) << "a course may not have noted a loss yet";
  followed_ = false;
  EXPECT_FALSE(asked.may_begin_again()) << "nobody begins it again";
  followed_ = true;
  record_.status = {.state = JobState::succeeded, .code = 0};
  course_.stage = Stage::ending;
  EXPECT_FALSE(asked.may_begin_again());
  EXPECT_EQ(asked.status()->state, JobState::saving);
  end(0);
  calls_.clear();
  EXPECT_EQ(asked.status()->state, JobState::succeeded);
  told_ = true;
  EXPECT_EQ(asked.status()->state, JobState::succeeded);
  EXPECT_TRUE(calls_.empty()) << "the machines are gone";
}

TEST_F(RentedJobTest, WhySaysWhatTheCourseDoes) {
  lose();
  const auto said = job().why();
  ASSERT_TRUE(said);
  EXPECT_EQ(said->text,
            "job aaaa1111 (train) on lab: restarting\n"
            "attempt 2: the rest of the lost machines is being terminated\n"
            "lockstep logs -f aaaa1111 follows the output\n");
  EXPECT_EQ(said->json["state"], "restarting");
  EXPECT_EQ(said->json["course"]["attempt"], 2);
  EXPECT_TRUE(calls_.empty());
  course_.stage = Stage::ending;
  EXPECT_NE(job().why()->text.find("on lab: lost\n"), std::string::npos);
  EXPECT_NE(job().why()->text.find("lockstep logs lab shows"), std::string::npos);
  begin_again();
  EXPECT_EQ(job().why()->json["state"], "running");
  EXPECT_EQ(calls_, std::vector<std::string>{"why"});
  told_ = true;
  EXPECT_FALSE(job().why()->json.contains("course"));
}

TEST_F(RentedJobTest, AProfileIsOfThePresentAttempt) {
  EXPECT_EQ(job().profile({.query = {.id = 7}})->agents.size(), 1U);
  EXPECT_TRUE(job().bring_trace({.rank = 3}, "here", {}));
  EXPECT_EQ(calls_, (std::vector<std::string>{"profile 7", "bring 3 to here"}));
  lose();
  EXPECT_TRUE(job().profile({.query = {.id = 7}})->agents.empty());
  EXPECT_EQ(calls_.size(), 2U) << "lost machines are not asked";
}

TEST_F(RentedJobTest, AllAttemptsAreFollowedUntilTheCourseHasEnded) {
  ends_ = {{.status = {.state = JobState::failed, .code = 143}}};
  then([] {});  // the course has not noted the loss yet
  then([this] { lose(); });
  then([this] { course_.stage = Stage::renting; });
  then([this] { begin_again(); });
  then([this] { course_.stage = Stage::ending; });
  then([this] { end(0); });
  const auto followed = job().follow({});
  ASSERT_TRUE(followed);
  EXPECT_EQ(calls_, (std::vector<std::string>{"follow on old", "follow on new"}));
  EXPECT_EQ(followed->status.state, JobState::succeeded);
  EXPECT_EQ(followed->status.code, 0);
  EXPECT_TRUE(happens_.empty());
}

TEST_F(RentedJobTest, AnAttemptIsGoneOnceTheCourseHasNotedItsLoss) {
  ends_ = {{.gone = true, .status = {}}};
  then([this] { end(255); });
  EXPECT_EQ(job().follow({})->status.code, 255);
  EXPECT_FALSE(FakeAttempt::gone);
  begin_again();
  meanwhile_ = [this] { lose(); };
  ends_ = {{.gone = true, .status = {}}};
  then([this] { end(1); });
  const auto followed = job().follow({});
  EXPECT_TRUE(FakeAttempt::gone);
  EXPECT_EQ(followed->status.state, JobState::failed);
  EXPECT_EQ(followed->status.code, 1);
  EXPECT_FALSE(followed->gone);
}

// Some hosts may not know the job yet.
TEST_F(RentedJobTest, AnAttemptIsFollowedOnceAllHostsHaveIt) {
  record_.status = {.state = JobState::starting};
  then([this] { EXPECT_TRUE(calls_.empty()); });
  then([this] { on("new"); });
  then([this] { end(0); });
  EXPECT_TRUE(job().follow({}));
  EXPECT_EQ(calls_, std::vector<std::string>{"follow on new"});
}

// A first attempt that could not start has no record.
TEST_F(RentedJobTest, AJobWithoutARecordIsAwaited) {
  recorded_ = false;
  then([this] { recorded_ = true; });
  then([this] { end(0); });
  EXPECT_TRUE(job().follow({}));
  EXPECT_EQ(calls_, std::vector<std::string>{"follow on old"});
  recorded_ = false;
  begin_again();
  then([this] { end(1); });
  const auto followed = job().follow({});
  ASSERT_TRUE(followed);
  EXPECT_EQ(followed->status.code, 1);
}

TEST_F(RentedJobTest, OnlyTheFirstAttemptIsFollowedFromItsLastLines) {
  then([this] { lose(); });
  then([this] { begin_again(); });
  then([this] { end(0); });
  EXPECT_TRUE(job().follow({.lines = 5}));
  EXPECT_EQ(calls_, (std::vector<std::string>{"follow on old from 5 lines", "follow on new"}));
}

TEST_F(RentedJobTest, TheCourseKnowsThatOutputsAreLost) {
  then([this] { end(1); });
  const auto followed = job().follow({});
  EXPECT_EQ(followed->status.state, JobState::failed);
  EXPECT_EQ(followed->status.code, 1);
}

TEST_F(RentedJobTest, AnEndThatTheUserWasToldMeanwhileIsTheCourses) {
  ends_ = {{.status = {.state = JobState::canceled, .code = 143}}};
  then([this] {
    course_.stage = Stage::ending;
    course_.code = 143;
  });
  then([this] { told_ = true; });
  EXPECT_EQ(job().follow({})->status.state, JobState::canceled);
  calls_.clear();
  ASSERT_TRUE(job().follow({}));
  EXPECT_EQ(calls_.size(), 1U) << "without a course only the machines know";
  EXPECT_EQ(pauses_, 2);
}

TEST_F(RentedJobTest, ADroppedJobIsLost) {
  lose();
  then([this] { told_ = true; });
  EXPECT_EQ(job().follow({})->status.state, JobState::lost);
}

TEST_F(RentedJobTest, ASignalEndsTheFollowingBetweenAttempts) {
  lose();
  happens_.emplace_back([] { return Status(Failure(Error{Errc::canceled, "", {}, SIGINT})); });
  const auto followed = job().follow({});
  ASSERT_TRUE(followed);
  EXPECT_TRUE(followed->left);
  EXPECT_EQ(followed->signal, SIGINT);
}

TEST_F(RentedJobTest, OnlyPresentOutputIsNotAwaited) {
  EXPECT_TRUE(job().follow({.to_end = false}));
  EXPECT_EQ(calls_.size(), 1U);
  record_.status.state = JobState::starting;
  EXPECT_EQ(job().follow({.to_end = false}).error().message, "the job is being started");
  lose();
  EXPECT_EQ(job().follow({.to_end = false}).error().message,
            "the machines of 'lab' are not there now");
  end(0);
  EXPECT_EQ(code_of(job().follow({.to_end = false})), Errc::unavailable);
  EXPECT_EQ(pauses_, 0);
}

TEST_F(RentedJobTest, AJobThatNoProcessFollowsIsNotAwaitedForEver) {
  lose();
  followed_ = false;
  EXPECT_EQ(code_of(job().follow({})), Errc::unavailable);
  EXPECT_EQ(pauses_, 300);
  EXPECT_EQ(code_of(job().cancel()), Errc::unavailable);
}

TEST_F(RentedJobTest, BetweenAttemptsTheCourseCancels) {
  ASSERT_TRUE(job().cancel());
  EXPECT_EQ(calls_, std::vector<std::string>{"cancel"});
  lose();
  then([this] {
    course_.stage = Stage::ending;
    course_.code = 130;
  });
  const auto status = job().cancel();
  ASSERT_TRUE(status);
  EXPECT_EQ(calls_.back(), "interrupt rental");
  EXPECT_EQ(status->state, JobState::canceled);
  EXPECT_EQ(status->code, 130);
}

TEST_F(RentedJobTest, ACourseResumesItsJobByItself) {
  EXPECT_EQ(code_of(job().resume({})), Errc::invalid_input);
  told_ = true;
  EXPECT_TRUE(job().resume({}));
}

}  // namespace
}  // namespace lockstep::jobs::rented
