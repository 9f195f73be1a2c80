#include "jobs/places/running_jobs.h"

#include "base/error_testing.h"
#include "jobs/here/local_job.h"
#include "jobs/places/places_testing.h"

#include <signal.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace lockstep::jobs::places {
namespace {

using RunningJobsTest = PlacesTest;

TEST_F(RunningJobsTest, AreThoseThatHaveNotEndedByTheirHosts) {
  add("aaaa1111", "one", {"a"});
  add("bbbb2222", "two", {"b"});
  add("cccc3333", "over", {"c"}, JobState::failed);
  tells("a", "aaaa1111", {.stage = job::Stage::running});
  tells("b", "bbbb2222", {.stage = job::Stage::ended, .ended_ms = 7});
  auto jobs = running_jobs(book(), places());
  ASSERT_TRUE(jobs) << jobs.error().message;
  // Runs on this machine, of other tests for example, are in the list as well.
  std::erase_if(*jobs, [](const KnownJob& job) { return here::is_local_job(job); });
  ASSERT_EQ(jobs->size(), 1U);
  EXPECT_EQ(jobs->front().id, "aaaa1111");
}

TEST_F(RunningJobsTest, AJobOfAnotherOwnerRunsUntilItsEndIsTold) {
  owned("lab");
  auto jobs = running_jobs(book(), places());
  ASSERT_TRUE(jobs) << jobs.error().message;
  EXPECT_EQ(jobs->back().id, "lab");
  EXPECT_TRUE(asked_owners_.empty());
}

// A job of which only the state is asked.
class AskedJob : public Job {
 public:
  AskedJob(KnownJob record, Result<JobStatus> status)
      : Job(std::move(record)), status_(std::move(status)) {}
  Result<JobStatus> status() override { return status_; }
  Result<Explanation> why() override { return no_word(); }
  Result<Followed> follow(const FollowOptions& /*options*/) override { return no_word(); }
  Result<JobStatus> cancel() override { return no_word(); }
  Result<Resumed> resume(const std::vector<std::string>& /*env*/) override { return no_word(); }

 private:
  static Failure no_word() { return fail(Errc::internal, "not asked"); }
  Result<JobStatus> status_;
};

class JobsOnMachinesTest : public RunningJobsTest {
 protected:
  // Returns what is found if the hosts say so of every job.
  Result<std::vector<std::string>> found(const Result<JobStatus>& status) {
    return jobs_on_machines(
        book(), "gpus", [this] { return alive_; },
        [&](KnownJob record) {
          ++opened_;
          return std::make_unique<AskedJob>(std::move(record), status);
        });
  }
  bool alive_ = true;
  int opened_ = 0;
};

TEST_F(JobsOnMachinesTest, AreThoseWhoseHostsDoNotTellTheirEnd) {
  add("aaaa1111", "one", {"a"});
  add("bbbb2222", "over", {"a"}, JobState::failed);
  const std::vector<std::string> one = {"aaaa1111"};
  EXPECT_EQ(found(JobStatus{.state = JobState::running}).value(), one);
  EXPECT_EQ(opened_, 1) << "the book knows the end of the other";
  EXPECT_EQ(found(fail(Errc::unavailable, "no route")).value(), one);
  const NodeStatus silent{.name = "b", .state = std::nullopt};
  EXPECT_EQ(found(JobStatus{.state = JobState::failed, .nodes = {silent}}).value(), one);
  const auto stopped = found(Failure(Error{Errc::canceled, "stopped", {}, SIGINT}));
  EXPECT_EQ(code_of(stopped), Errc::canceled);
}

TEST_F(JobsOnMachinesTest, AnEndThatTheHostsTellIsNoted) {
  add("aaaa1111", "one", {"a"});
  EXPECT_TRUE(found(JobStatus{.state = JobState::lost}).value().empty());
  EXPECT_EQ(book().find("aaaa1111")->status.state, JobState::lost);
}

TEST_F(JobsOnMachinesTest, DeadMachinesAndOtherClustersHaveNone) {
  add("aaaa1111", "one", {"a"});
  alive_ = false;
  const JobStatus running{.state = JobState::running};
  EXPECT_TRUE(found(running).value().empty());
  alive_ = true;
  EXPECT_TRUE(jobs_on_machines(book(), "lab", [] { return true; }, {}).value().empty());
  EXPECT_EQ(opened_, 0);
}

}  // namespace
}  // namespace lockstep::jobs::places
