// Profiles of a job that the test plays, by a clock that the test turns.
#include "jobs/profile_run.h"

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <signal.h>

#include <algorithm>
#include <set>
#include <utility>

namespace lockstep::jobs {
namespace {

using status::ProfileState;
using What = status::ProfileQuery::What;
using std::chrono::seconds;
using Texts = std::vector<std::string>;

// Ranks 0 and 1 are on hosts 0 and 1.
class FakeJob : public Job {
 public:
  explicit FakeJob(io::TimePoint& now) : Job(known()), now_(now) {}
  static KnownJob known() {
    KnownJob job;
    job.nodes.resize(2);
    return job;
  }
  Result<ProfileAnswers> profile(const ProfileRequest& request) override {
    std::string hosts;
    for (const int host : request.hosts)
      hosts += fmt::format(" {}", host);
    const char* const word = request.query.what == What::start ? "start"
                             : request.query.what == What::end ? "end"
                                                               : "look";
    asked.push_back(fmt::format("{}{}", word, hosts));
    if (stopped) return Failure({Errc::canceled, "stopped", {}, SIGINT});
    ProfileAnswers answers;
    for (int rank = 0; rank < 2; ++rank)
      if (request.hosts.empty() || request.hosts.contains(rank))
        answers.agents.push_back(
            {.host = rank, .says = {.folder = "/f", .ranks = {{rank, state(rank)}}}});
    if (none) answers.agents.clear();
    if (request.query.what == What::look) now_ += seconds(look);
    return answers;
  }
  Status bring_trace(const TraceThere& trace, const std::string& to,
                     const std::function<Status()>& meanwhile) override {
    asked.push_back("bring " + to);
    now_ += seconds(fails);
    if (fails > 0) return Failure(Error{Errc::unavailable, "no answer", {}, 0});
    for (int second = 0; second < fetch; ++second) {
      now_ += seconds(1);
      if (Status held = meanwhile(); !held) return held;
    }
    brought.insert(trace.rank);
    return {};
  }
  Result<JobStatus> status() override { return JobStatus{}; }
  Result<Explanation> why() override { return Explanation{}; }
  Result<Followed> follow(const FollowOptions& /*options*/) override { return Followed{}; }
  Result<JobStatus> cancel() override { return JobStatus{}; }
  Result<Resumed> resume(const std::vector<std::string>& /*env*/) override { return Resumed{}; }

  ProfileState state(int rank) const {
    return now_ >= written[rank] ? ProfileState::written : ProfileState::ordered;
  }

  Texts asked;
  std::set<int> brought;
  io::TimePoint written[2] = {};  // when the ranks finish their traces
  int fetch = 0;                  // seconds
  int fails = 0;                  // seconds until a fetch fails; 0: it does not
  int look = 0;                   // seconds from the answers of the agents until they are here
  bool stopped = false;
  bool none = false;

 private:
  io::TimePoint& now_;
};

class ProfileRun : public ::testing::Test {
 protected:
  Result<int> run(int limit = 60) {
    return run_profile(job_, {.id = 7, .wish = {.steps = 1, .limit = limit}}, "/o", course_,
                       {.now = [this] { return now_; },
                        .wait =
                            [this](std::chrono::milliseconds time) {
                              now_ += time;
                              return now_ >= signal_at_ ? SIGINT : 0;
                            },
                        .say = [this](const std::string& line) { said_.push_back(line); }});
  }
  std::size_t count(const std::string& word) const {
    return static_cast<std::size_t>(std::count(job_.asked.begin(), job_.asked.end(), word));
  }

  io::TimePoint now_{seconds(1000)};
  io::TimePoint signal_at_ = now_ + seconds(100'000);
  FakeJob job_{now_};
  ProfileCourse course_;
  Texts said_;
};

TEST_F(ProfileRun, AllTracesAreBroughtAndAllHostsAreToldOfTheEnd) {
  EXPECT_EQ(run(), 0);
  EXPECT_EQ(job_.asked,
            (Texts{"start", "look 0 1", "bring /o/rank-0.json", "bring /o/rank-1.json", "end"}));
  EXPECT_EQ(course_.traces(), (std::set{0, 1}));
  EXPECT_EQ(said_, Texts());
}

TEST_F(ProfileRun, HostsThatMayHaveBegunAreToldOfTheEnd) {
  job_.none = true;
  EXPECT_EQ(run().error().message, "no agent of the job answers");
  EXPECT_EQ(job_.asked, (Texts{"start", "end"}));
  job_.asked.clear();
  job_.stopped = true;
  EXPECT_EQ(run(), SIGINT);
  EXPECT_EQ(job_.asked, (Texts{"start", "end"}));
  job_.asked.clear();
  job_.stopped = job_.none = false;
  job_.written[1] = now_ + seconds(50);
  signal_at_ = now_ + seconds(10);
  EXPECT_EQ(run(), SIGINT);
  EXPECT_EQ(job_.brought, std::set{0});
  EXPECT_EQ(job_.asked.back(), "end");
}

// The agents remove what was not fetched.
TEST_F(ProfileRun, ATraceOfTheLastMomentIsBrought) {
  job_.written[1] = now_ + seconds(5);
  job_.look = 3;
  EXPECT_EQ(run(5), 0);
  EXPECT_EQ(job_.brought, (std::set{0, 1}));
  EXPECT_TRUE(course_.missing().empty());
}

TEST_F(ProfileRun, TheTimeOfAFetchIsNotThatOfTheProfile) {
  job_.fetch = 100;
  job_.written[1] = now_ + seconds(130);
  EXPECT_EQ(run(60), 0);
  EXPECT_EQ(job_.brought, (std::set{0, 1}));
  EXPECT_FALSE(said_.empty());
}

TEST_F(ProfileRun, ALongFetchKeepsItsHoldOnAllHosts) {
  job_.fetch = 90;
  EXPECT_EQ(run(), 0);
  EXPECT_EQ(count("look 0 1"), 1U + 9U) << "every 20 s";
}

TEST_F(ProfileRun, TracesThatFailSlowlyKeepTheHold) {
  job_.fails = 100;
  EXPECT_EQ(run(), 0);
  EXPECT_EQ(job_.asked, (Texts{"start", "look 0 1", "bring /o/rank-0.json", "look 1",
                               "bring /o/rank-1.json", "end"}));
}

TEST_F(ProfileRun, ALongFetchSaysWhatIsFetched) {
  job_.fetch = 25;
  EXPECT_EQ(run(), 0);
  EXPECT_EQ(said_, (Texts{"fetching the trace of rank 0", "fetching the trace of rank 0",
                          "fetching the trace of rank 1", "fetching the trace of rank 1",
                          "fetching the trace of rank 1"}));
}

TEST_F(ProfileRun, AHostWhoseTraceIsHereIsStillHeld) {
  job_.written[1] = now_ + seconds(50);
  EXPECT_EQ(run(), 0);
  EXPECT_EQ(count("look 0 1"), 1U + 2U);
  EXPECT_GT(count("look 1"), 20U);
}

TEST_F(ProfileRun, AStopDuringAFetchEndsIt) {
  job_.fetch = 90;
  job_.written[1] = now_ + seconds(500);
  const io::TimePoint began = now_;
  EXPECT_EQ(run_profile(job_, {.id = 7, .wish = {.steps = 1, .limit = 60}}, "/o", course_,
                        {.now =
                             [&] {
                               job_.stopped = now_ > began + seconds(30);
                               return now_;
                             },
                         .wait = [](std::chrono::milliseconds) { return 0; }}),
            SIGINT);
  EXPECT_TRUE(job_.brought.empty());
  EXPECT_EQ(job_.asked.back(), "end");
}

}  // namespace
}  // namespace lockstep::jobs
