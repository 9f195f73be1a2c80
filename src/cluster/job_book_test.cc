#include "cluster/job_book.h"

#include "cluster/job_follow.h"
#include "cluster/job_plan.h"
#include "cluster/job_start.h"
#include "cluster/slurm_submit.h"

#include <gtest/gtest.h>

#include <stdlib.h>

#include <filesystem>

namespace lockstep::cluster {
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

// `lockstep why 2`, where a job that Slurm calls 1 has an id of ours that begins with a 2.
TEST_F(JobBookTest, ANumberOfSlurmsIsNotTheBeginningOfAnId) {
  KnownJob known = job("2f0c9a31", "train", 1);
  known.nodes.clear();
  known.plan = plan_text(SlurmPlace{.job = "1", .folder = "/f", .output = "/o"});
  ASSERT_TRUE(slurm_place(known));
  ASSERT_TRUE(book().add(known));
  const auto found = find_job(book(), "2");
  ASSERT_TRUE(found);
  EXPECT_TRUE(begins_only(*found, "2"));
  EXPECT_FALSE(begins_only(*find_job(book(), "1"), "1"));
  EXPECT_FALSE(begins_only(*find_job(book(), "2f0c9a31"), "2f0c9a31"));
  EXPECT_FALSE(begins_only(*find_job(book(), "train"), "train"));
}

// The chain was Slurm's job 2, and waits as job 4. The chain's own id begins with a 2.
TEST_F(JobBookTest, AnEarlierNumberOfAChainIsNotTheBeginningOfItsId) {
  std::filesystem::create_directories(folder_);
  slurm::BatchState state;
  state.stage = slurm::Stage::requeued;
  state.job = "2";
  state.next = "4";
  state.chain = 0;
  ASSERT_TRUE(slurm::JobFolder(folder_).keep(state));
  KnownJob known = job("2f0c9a31", "train", 1);
  known.nodes.clear();
  known.plan = plan_text(SlurmPlace{.job = "2", .folder = folder_, .output = "/o"});
  ASSERT_TRUE(book().add(known));
  ASSERT_EQ(slurm_place(known)->job, "4");
  EXPECT_FALSE(begins_only(*find_job(book(), "2"), "2"));
  EXPECT_FALSE(begins_only(*find_job(book(), "4"), "4"));
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

TEST(JobPlan, ALostNodeBeginsAgainWithItsOwnWordsAndVariables) {
  JobRequest request;
  request.hosts = {{.name = "gpus-0", .target = {.host = "a"}},
                   {.name = "gpus-1", .target = {.host = "b"}}};
  request.spec = {.id = "aaaa1111",
                  .name = "train",
                  .run = {"--", "train.py"},
                  .env = {"LOCKSTEP_RDZV_TOKEN=t", "A=1", "B=2", "SECRET=s"},
                  .folder = "f",
                  .client = "me"};
  request.words = {{"--node-rank=0"}, {"--node-rank=1"}};
  request.secrets = {"SECRET"};
  KnownJob job;
  job.id = "aaaa1111";
  job.nodes = request.hosts;
  job.plan = plan_text(request, {.ahead = {}, .endpoint = "10.0.0.1:29400"});
  EXPECT_EQ(job.plan.find("SECRET="), std::string::npos);
  const auto refused = resumed_request(job, {1}, {"A=1"});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().hint, "give them again: --secret SECRET");
  const auto again = resumed_request(job, {1}, {"B=3", "SECRET=once more"});
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_TRUE(again->spec.resumes);
  EXPECT_EQ(again->spec.nodes, 2);
  EXPECT_EQ(again->nodes, std::vector<int>{1});
  EXPECT_EQ(again->hosts.front().name, "gpus-1");
  EXPECT_EQ(again->spec.env,
            (std::vector<std::string>{"LOCKSTEP_RDZV_TOKEN=t", "A=1", "B=3", "SECRET=once more"}));
  EXPECT_EQ(again->words.front(),
            (std::vector<std::string>{"--node-rank=1", "--rdzv-endpoint=10.0.0.1:29400"}));
  job.plan = "{}";
  EXPECT_FALSE(resumed_request(job, {1}, {}));
}

TEST(JobStart, AnAddressIsOneThatAllHaveReached) {
  EXPECT_EQ(common_address({"a", "b", "c"}, {{"a", "b"}, {"b", "c"}}), "b");
  EXPECT_EQ(common_address({"a", "b"}, {{"a"}, {"b"}}), "");
  EXPECT_EQ(common_address({"a"}, {{}}), "");
}

}  // namespace
}  // namespace lockstep::cluster
