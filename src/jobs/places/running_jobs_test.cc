#include "jobs/places/running_jobs.h"

#include "jobs/here/local_job.h"
#include "jobs/places/places_testing.h"

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

}  // namespace
}  // namespace lockstep::jobs::places
