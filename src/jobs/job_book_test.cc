#include "jobs/job_book.h"

#include "jobs/job_ending.h"

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

TEST_F(JobBookTest, AJobIsFoundByIdItsBeginningOrItsName) {
  ASSERT_TRUE(book().add(job("aaaa1111", "train", 1)));
  ASSERT_TRUE(book().add(job("aaaa2222", "train", 2)));
  ASSERT_TRUE(book().add(job("bbbb1111", "other", 3)));
  EXPECT_EQ(book().find("aaaa1111")->id, "aaaa1111");
  EXPECT_EQ(book().find("train")->id, "aaaa2222") << "the newest of that name";
  EXPECT_EQ(book().find("b")->id, "bbbb1111");
  EXPECT_EQ(book().find("aaaa").error().message,
            "several jobs begin with aaaa: aaaa2222 and aaaa1111");
  EXPECT_EQ(book().find("").error().code, Errc::not_found);
  EXPECT_EQ(book().find("%").error().code, Errc::not_found);
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

TEST_F(JobBookTest, TheEndIsNoted) {
  ASSERT_TRUE(book().add(job("aaaa1111", "train", 1)));
  ASSERT_TRUE(book().note("aaaa1111", job::Stage::ended, 3, 9));
  const auto jobs = book().list(10);
  ASSERT_EQ(jobs->size(), 1U);
  EXPECT_EQ(jobs->front().stage, job::Stage::ended);
  EXPECT_EQ(jobs->front().code, 3);
  EXPECT_EQ(jobs->front().ended_ms, 9);
}

TEST_F(JobBookTest, JobsOfANameThatGoOnAndSinceWhenTheyAreAway) {
  ASSERT_TRUE(book().add(job("aaaa1111", "train", 1)));
  ASSERT_TRUE(book().add(job("aaaa2222", "train", 2)));
  ASSERT_TRUE(book().note("aaaa2222", job::Stage::ended, 0, 9));
  ASSERT_EQ(book().going_on("train")->size(), 1U);
  EXPECT_EQ(book().going_on("train")->front().id, "aaaa1111");
  EXPECT_EQ(book().note_away("aaaa1111", 50), 50);
  EXPECT_EQ(book().note_away("aaaa1111", 60), 50) << "since the first time";
  EXPECT_EQ(book().find("aaaa1111")->away_ms, 50);
  EXPECT_EQ(book().find("aaaa1111")->ended_ms, 0);
  ASSERT_TRUE(book().note("aaaa1111", job::Stage::running, 0, 0));
  EXPECT_EQ(book().find("aaaa1111")->away_ms, 0);
}

job::JobRecord node(job::Stage stage, int code) {
  job::JobRecord record;
  record.state.stage = stage;
  record.state.code = code;
  return record;
}

TEST(JobEnding, IsOfAllNodesThatTell) {
  using job::Stage;
  const auto ending = ending_of({node(Stage::ended, 0), node(Stage::ended, 3), std::nullopt});
  EXPECT_EQ(ending.stage, Stage::ended);
  EXPECT_EQ(ending.code, 3);
  const auto half = ending_of({node(Stage::ended, 0), node(Stage::running, 0)});
  EXPECT_EQ(half.stage, Stage::running);
  EXPECT_EQ(half.code, std::nullopt) << "only what has ended has a code";
  EXPECT_EQ(ending_of({node(Stage::lost, 0), node(Stage::ended, 0)}).stage, Stage::ended)
      << "a node was replaced, the job went well";
  const auto unknown = ending_of({node(Stage::lost, 0), std::nullopt});
  EXPECT_EQ(unknown.stage, Stage::lost);
  EXPECT_EQ(unknown.code, std::nullopt);
}

}  // namespace
}  // namespace lockstep::jobs
