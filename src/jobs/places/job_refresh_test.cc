#include "jobs/places/job_refresh.h"

#include "jobs/places/places_testing.h"

namespace lockstep::jobs::places {
namespace {

class JobRefreshTest : public PlacesTest {
 protected:
  // What `lockstep jobs` would show, from the journal.
  KnownJob shown(const std::string& id) {
    auto jobs = book().list(100);
    EXPECT_TRUE(refresh_jobs(book(), *jobs, places()));
    for (const KnownJob& job : *jobs)
      if (job.id == id) {
        EXPECT_EQ(job.status.state, book().find(id)->status.state) << "the journal agrees";
        EXPECT_EQ(job.away_ms, book().find(id)->away_ms);
        return job;
      }
    ADD_FAILURE() << id;
    return {};
  }
};

const job::PartState kRuns{.stage = job::Stage::running};
const job::PartState kLost{.stage = job::Stage::lost};
const job::PartState kFailed{.stage = job::Stage::ended, .ended_ms = 7, .code = 3};

TEST_F(JobRefreshTest, EachHostIsAskedOnceAboutAllItsJobs) {
  add("aaaa1111", "one", {"a", "b"});
  add("bbbb2222", "two", {"b"});
  add("cccc3333", "over", {"c"}, JobState::failed);
  tells("a", "aaaa1111", kRuns);
  tells("b", "aaaa1111", kRuns);
  tells("b", "bbbb2222", kFailed);
  EXPECT_EQ(shown("bbbb2222").status.code, 3);
  ASSERT_EQ(asked_.size(), 1U);
  EXPECT_EQ(asked_[0].hosts.size(), 2U) << "not c: its job's end is known";
  EXPECT_EQ(shown("aaaa1111").status.state, JobState::running);
}

TEST_F(JobRefreshTest, AJobWhoseHostsAreSilentKeepsItsState) {
  add("aaaa1111", "one", {"a"});
  odd_["a"] = silent_;
  const std::int64_t since = shown("aaaa1111").away_ms;
  EXPECT_EQ(since, 1'000'000'000);
  EXPECT_EQ(shown("aaaa1111").status.state, JobState::running);
  time_ += std::chrono::minutes(5);
  EXPECT_EQ(shown("aaaa1111").away_ms, since) << "since the first time";
  odd_.clear();
  tells("a", "aaaa1111", kRuns);
  EXPECT_EQ(shown("aaaa1111").away_ms, 0);
}

TEST_F(JobRefreshTest, AHostWithAStrangeAnswerCountsAsSilent) {
  for (const char* text : {"", "welcome to a", "{}", "7"}) {
    odd_["a"] = {.out = text};
    add("aaaa1111", "one", {"a"});
    EXPECT_NE(shown("aaaa1111").away_ms, 0) << text;
    ASSERT_TRUE(book().remove("aaaa1111"));
  }
  // Records of another version, and of a job that was not asked for.
  odd_["a"] = {.out = R"([1,{},{"spec":{"id":"zzzz9999"}}])"};
  add("aaaa1111", "one", {"a"}, JobState::starting);
  EXPECT_EQ(shown("aaaa1111").status.state, JobState::starting);
}

TEST_F(JobRefreshTest, OneLostPartIsNoEndWhileAnotherHostIsSilent) {
  add("aaaa1111", "one", {"a", "b"});
  tells("a", "aaaa1111", kLost);
  odd_["b"] = silent_;
  EXPECT_EQ(shown("aaaa1111").status.state, JobState::running);
  EXPECT_NE(shown("aaaa1111").away_ms, 0);
}

// The machine was installed anew. `why` and `resume` call such a job lost, and so must `jobs`.
TEST_F(JobRefreshTest, AJobThatNoneOfItsHostsKnowsIsLost) {
  add("aaaa1111", "one", {"a", "b"});
  odd_["a"] = silent_;
  EXPECT_NE(shown("aaaa1111").away_ms, 0);
  odd_.clear();
  tells("a", "aaaa1111", kLost);
  EXPECT_EQ(shown("aaaa1111").status.state, JobState::lost);
  EXPECT_EQ(shown("aaaa1111").away_ms, 0) << "its hosts answer";
  add("bbbb2222", "two", {"b"});
  EXPECT_EQ(shown("bbbb2222").status.state, JobState::lost);
}

// Another terminal is about to start it.
TEST_F(JobRefreshTest, AJobThatIsBeingStartedIsNotLost) {
  add("aaaa1111", "one", {"a"}, JobState::starting);
  EXPECT_EQ(shown("aaaa1111").status.state, JobState::starting);
}

TEST_F(JobRefreshTest, JobsOfThisMachinesSlurmAreAskedOfSlurmTogether) {
  KnownJob job = known();
  ASSERT_TRUE(book().add(job));
  job.id = "bbbb2222";
  job.plan = on_slurm::plan_text({.job = "9", .folder = top_ + "/none", .output = ""});
  ASSERT_TRUE(book().add(job));
  slurm_.state = "PENDING";
  EXPECT_EQ(shown("aaaa1111").status.state, JobState::queued);
  EXPECT_EQ(slurm_.times("squeue"), 1);
  EXPECT_EQ(shown("bbbb2222").status.state, JobState::lost) << "Slurm does not know it";
  EXPECT_TRUE(asked_.empty());
}

TEST_F(JobRefreshTest, ASlurmThatIsDownChangesNothing) {
  ASSERT_TRUE(book().add(known()));
  slurm_.answers = false;
  add("bbbb2222", "two", {"b"});
  tells("b", "bbbb2222", kFailed);
  EXPECT_EQ(shown("aaaa1111").status.state, known().status.state);
  EXPECT_EQ(shown("bbbb2222").status.state, JobState::failed) << "other places are asked";
}

TEST_F(JobRefreshTest, ALoginHostIsAskedAboutOneJobAtATime) {
  for (const char* id : {"aaaa1111", "bbbb2222"}) {
    KnownJob job = known();
    job.id = id;
    job.nodes = {host("login")};
    ASSERT_TRUE(book().add(job));
    tells("login", id, kFailed);
  }
  EXPECT_EQ(shown("aaaa1111").status.code, 3);
  ASSERT_EQ(asked_.size(), 2U);
  EXPECT_EQ(asked_[0].argv.size(), 3U);
  EXPECT_EQ(shown("bbbb2222").status.code, 3);
}

TEST_F(JobRefreshTest, ASilentLoginHostIsAskedOnlyOnce) {
  for (const char* id : {"aaaa1111", "bbbb2222"}) {
    KnownJob job = known();
    job.id = id;
    job.nodes = {host("login")};
    ASSERT_TRUE(book().add(job));
  }
  odd_["login"] = silent_;
  EXPECT_NE(shown("aaaa1111").away_ms, 0);
  EXPECT_EQ(asked_.size(), 1U) << "each question may take seconds";
  EXPECT_NE(shown("bbbb2222").away_ms, 0);
}

// The machines are gone: to ask them would take seconds and tell nothing.
TEST_F(JobRefreshTest, AJobWhoseMachinesWereLostIsRestarting) {
  add("aaaa1111", "train", {"a"});
  cloud::RentedJob course;
  course.cluster = "gpus";
  course.stage = cloud::RentedJob::Stage::renting;
  course.losses = 1;
  course.run_id = "aaaa1111-0000-4000-8000-000000000000";
  courses_ = {course};
  EXPECT_EQ(shown("aaaa1111").status.state, JobState::restarting);
  EXPECT_TRUE(asked_.empty());
  add("aaaa1111", "train", {"b"});
  tells("b", "aaaa1111", kRuns);
  courses_[0].stage = cloud::RentedJob::Stage::working;
  courses_[0].job = "aaaa1111";
  EXPECT_EQ(shown("aaaa1111").status.state, JobState::running) << "on other machines";
}

TEST_F(JobRefreshTest, AnEndedJobWhoseOutputsComeBackIsSaving) {
  add("aaaa1111", "train", {"a"}, JobState::succeeded);
  cloud::RentedJob course;
  course.cluster = "gpus";
  course.stage = cloud::RentedJob::Stage::working;
  course.job = "aaaa1111";
  course.back = {"out"};
  courses_ = {course};
  auto jobs = *book().list(10);
  ASSERT_TRUE(refresh_jobs(book(), jobs, places()));
  EXPECT_EQ(jobs[0].status.state, JobState::saving);
  EXPECT_EQ(book().find("aaaa1111")->status.state, JobState::succeeded) << "its end is kept";
  EXPECT_TRUE(asked_.empty());
}

TEST_F(JobRefreshTest, TheOwnerOfARentalTellsTheStateOfItsJob) {
  add("aaaa1111", "one", {"a"});
  tells("a", "aaaa1111", kRuns);
  owned("lab");
  owner_ = {.known = true, .ended = true, .state = "failed", .code = 3, .job = "cccc3333"};
  auto jobs = owned_jobs(places());
  ASSERT_EQ(jobs.size(), 1U);
  jobs.push_back(book().find("aaaa1111").value());
  ASSERT_TRUE(refresh_jobs(book(), jobs, places()));
  EXPECT_EQ(jobs[0].id, "cccc3333");
  EXPECT_EQ(jobs[0].status.state, JobState::failed);
  EXPECT_EQ(jobs[0].status.code, 3);
  EXPECT_EQ(jobs[1].status.state, JobState::running);
  EXPECT_EQ(asked_owners_, std::vector<std::string>({"me@desk"}));
}

TEST_F(JobRefreshTest, AJobThatItsOwnerRestartsIsNotLost) {
  owned("lab");
  owner_->state = "restarting";
  auto jobs = owned_jobs(places());
  ASSERT_TRUE(refresh_jobs(book(), jobs, places()));
  EXPECT_EQ(jobs.at(0).status.state, JobState::restarting);
}

TEST_F(JobRefreshTest, AJobWhoseOwnerIsSilentKeepsItsState) {
  owned("lab");
  owner_.reset();
  auto jobs = owned_jobs(places());
  ASSERT_TRUE(refresh_jobs(book(), jobs, places()));
  EXPECT_EQ(jobs.at(0).status.state, JobState::running);
  EXPECT_GT(jobs[0].away_ms, 0);
}

}  // namespace
}  // namespace lockstep::jobs::places
