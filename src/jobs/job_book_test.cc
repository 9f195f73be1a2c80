#include "jobs/job_book.h"

#include "base/error_testing.h"
#include "hosts/state_file.h"

#include <gtest/gtest.h>

#include <stdlib.h>

#include <filesystem>

namespace lockstep::jobs {
namespace {

class JobBookTest : public ::testing::Test {
 protected:
  JobBookTest() {
    std::string name = "/tmp/lockstep-book-XXXXXX";
    folder_ = mkdtemp(name.data());
  }
  ~JobBookTest() override { std::filesystem::remove_all(folder_); }
  JobBook book() const { return JobBook::open(folder_).value(); }
  static KnownJob job(const std::string& id, const std::string& name, std::int64_t created_ms) {
    KnownJob made{.id = id, .name = name, .place = "gpus", .command = "train.py"};
    made.created_ms = created_ms;
    made.nodes.push_back({.name = "gpus-0", .target = {.host = "h", .user = "me", .port = 22}});
    made.nodes.push_back({.name = "local", .target = {}, .here = true});
    return made;
  }

  std::string folder_;
};

// A container may have no home that can be written, and runs on this machine are found all the
// same.
TEST_F(JobBookTest, LookingNeedsNoFolder) {
  EXPECT_FALSE(JobBook::open("/proc/none/lockstep"));
  const auto empty = JobBook::open_to_look("/proc/none/lockstep");
  ASSERT_TRUE(empty) << empty.error().message;
  EXPECT_TRUE(empty->list(10)->empty());
  EXPECT_EQ(code_of(empty->find("train")), Errc::not_found);
  ASSERT_TRUE(book().add(job("aaaa1111", "train", 1)));
  EXPECT_EQ(JobBook::open_to_look(folder_)->find("train")->id, "aaaa1111");
}

TEST_F(JobBookTest, AJobIsFoundByIdItsBeginningOrItsName) {
  ASSERT_TRUE(book().add(job("aaaa1111", "train", 1)));
  ASSERT_TRUE(book().add(job("aaaa2222", "train", 2)));
  ASSERT_TRUE(book().add(job("bbbb1111", "other", 3)));
  EXPECT_EQ(book().find("aaaa1111")->id, "aaaa1111");
  EXPECT_EQ(book().find("train")->id, "aaaa2222") << "the newest of that name";
  EXPECT_EQ(book().find("b")->id, "bbbb1111");
  EXPECT_EQ(book().find("aaaa").error().message,
            "several jobs begin with aaaa: aaaa2222 and aaaa1111");
  EXPECT_EQ(code_of(book().find("")), Errc::not_found);
  EXPECT_EQ(code_of(book().find("%")), Errc::not_found);
}

TEST_F(JobBookTest, NodesComeBackAsTheyWere) {
  ASSERT_TRUE(book().add(job("aaaa1111", "train", 1)));
  const auto found = book().find("train");
  ASSERT_TRUE(found);
  ASSERT_EQ(found->nodes.size(), 2U);
  EXPECT_EQ(found->nodes[0].target, (ssh::Target{.host = "h", .user = "me", .port = 22}));
  EXPECT_FALSE(found->nodes[0].here);
  EXPECT_TRUE(found->nodes[1].here);
}

TEST_F(JobBookTest, ALaterAttemptTakesThePlaceOfTheEarlierOne) {
  ASSERT_TRUE(book().add(job("aaaa1111", "train", 1)));
  ASSERT_TRUE(book().note("aaaa1111",
                          JobStatus{.state = JobState::failed, .code = 143, .why = "a notice"}));
  KnownJob again = job("aaaa1111", "train", 2);
  again.nodes.resize(1);
  ASSERT_TRUE(book().add(again));
  ASSERT_EQ(book().list(10)->size(), 1U);
  const auto found = book().find("aaaa1111");
  EXPECT_EQ(found->nodes.size(), 1U);
  EXPECT_EQ(found->status.state, JobState::running);
  EXPECT_EQ(found->status.why, "");
}

TEST_F(JobBookTest, TheEndIsNoted) {
  ASSERT_TRUE(book().add(job("aaaa1111", "train", 1)));
  ASSERT_TRUE(book().note(
      "aaaa1111",
      JobStatus{.state = JobState::failed, .code = 3, .ended_ms = 9, .why = "worker: rank 1"}));
  const auto jobs = book().list(10);
  ASSERT_EQ(jobs->size(), 1U);
  EXPECT_EQ(jobs->front().status.state, JobState::failed);
  EXPECT_EQ(jobs->front().status.code, 3);
  EXPECT_EQ(jobs->front().status.ended_ms, 9);
  EXPECT_EQ(jobs->front().status.why, "worker: rank 1");
}

TEST_F(JobBookTest, EveryStateComesBackAsItWasNoted) {
  ASSERT_TRUE(book().add(job("aaaa1111", "train", 1)));
  for (int number = 0; number <= static_cast<int>(JobState::lost); ++number) {
    const auto state = static_cast<JobState>(number);
    const int code = state == JobState::failed ? 1 : 0;
    ASSERT_TRUE(book().note("aaaa1111", JobStatus{.state = state, .code = code}));
    EXPECT_EQ(book().find("aaaa1111")->status.state, state) << state_name(state);
  }
}

// An older version knows and changes only the columns of the table.
TEST_F(JobBookTest, AnOlderVersionReadsAndChangesARecord) {
  ASSERT_TRUE(book().add(job("aaaa1111", "train", 1)));
  ASSERT_TRUE(book().note("aaaa1111", JobStatus{.state = JobState::canceled, .code = 1}));
  const auto older = hosts::open_state(folder_);
  {
    // Finish the statement before the record changes: it reads the state at its start.
    auto row = older->prepare("SELECT stage, code FROM jobs");
    ASSERT_TRUE(row->step().value());
    EXPECT_EQ(row->text(0), "ended");
    EXPECT_EQ(row->number(1), 1);
  }
  EXPECT_EQ(book().find("aaaa1111")->status.state, JobState::canceled);
  ASSERT_TRUE(older->execute("UPDATE jobs SET stage = 'running', code = 0"));
  EXPECT_EQ(book().find("aaaa1111")->status.state, JobState::running);
  ASSERT_TRUE(older->execute("UPDATE job_facts SET json = 'no json'"));
  EXPECT_EQ(book().find("aaaa1111")->status.state, JobState::running);
  ASSERT_TRUE(book().remove("aaaa1111"));
  auto left = older->prepare("SELECT count(*) FROM job_facts");
  ASSERT_TRUE(left->step().value());
  EXPECT_EQ(left->number(0), 0);
}

TEST_F(JobBookTest, MembersOfANewerVersionStay) {
  ASSERT_TRUE(book().add(job("aaaa1111", "train", 1)));
  const auto newer = hosts::open_state(folder_);
  ASSERT_TRUE(newer->execute("UPDATE job_facts SET json = '{\"state\":\"running\",\"new\":7}'"));
  ASSERT_TRUE(book().note("aaaa1111", JobState::saving));
  auto row = newer->prepare("SELECT json_extract(json, '$.new') FROM job_facts");
  ASSERT_TRUE(row->step().value());
  EXPECT_EQ(row->number(0), 7);
}

TEST_F(JobBookTest, JobsOfANameThatGoOnAndSinceWhenTheyAreAway) {
  ASSERT_TRUE(book().add(job("aaaa1111", "train", 1)));
  ASSERT_TRUE(book().add(job("aaaa2222", "train", 2)));
  ASSERT_TRUE(book().note("aaaa2222", JobStatus{.state = JobState::succeeded, .code = 0}));
  ASSERT_EQ(book().going_on("train")->size(), 1U);
  EXPECT_EQ(book().going_on("train")->front().id, "aaaa1111");
  EXPECT_EQ(book().note_away("aaaa1111", 50), 50);
  EXPECT_EQ(book().note_away("aaaa1111", 60), 50) << "since the first time";
  EXPECT_EQ(book().find("aaaa1111")->away_ms, 50);
  EXPECT_EQ(book().find("aaaa1111")->status.ended_ms, 0);
  ASSERT_TRUE(book().note("aaaa1111", JobState::running));
  EXPECT_EQ(book().find("aaaa1111")->away_ms, 0);
}

}  // namespace
}  // namespace lockstep::jobs
