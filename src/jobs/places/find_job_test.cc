#include "jobs/places/find_job.h"

#include "base/error_testing.h"
#include "jobs/here/local_job.h"
#include "jobs/on_hosts/hosts_job.h"
#include "jobs/on_slurm/login_job.h"
#include "jobs/on_slurm/slurm_job.h"
#include "jobs/places/places_testing.h"

namespace lockstep::jobs::places {
namespace {

class FindJobTest : public PlacesTest {
 protected:
  Result<KnownJob> find(const std::string& word) { return find_job(book(), word, places()); }
  Result<KnownJob> running(const std::string& word, Several several) {
    return find_running_job(book(), word, several, places());
  }
};

const job::PartState kRunsThere{.stage = job::Stage::running};
const job::PartState kEndedThere{.stage = job::Stage::ended, .ended_ms = 7};

TEST_F(FindJobTest, AWordIsAnIdANameOrTheBeginningOfAnId) {
  add("aaaa1111", "train", {"a"});
  add("aabb2222", "eval", {"a"});
  EXPECT_EQ(find("aaaa1111")->name, "train");
  EXPECT_EQ(find("eval")->id, "aabb2222");
  EXPECT_EQ(find("aab")->id, "aabb2222");
  const auto several = find("aa");
  EXPECT_EQ(code_of(several), Errc::invalid_input);
  EXPECT_NE(several.error().message.find("aaaa1111"), std::string::npos) << several.error().message;
  EXPECT_EQ(code_of(find("other")), Errc::not_found);
  const auto gone = find("pid-999999999");
  EXPECT_EQ(code_of(gone), Errc::not_found);
  EXPECT_NE(gone.error().hint.find("--events"), std::string::npos);
}

TEST_F(FindJobTest, AWordMayNameARowOfASweep) {
  const auto found = [&](const std::string& word) {
    return find_row_of_job(book(), word, "why", places());
  };
  KnownJob sweep = add("aaaa1111", "train", {"a"});
  sweep.plan = R"({"spec":{"run":["--sweep=lr=1,2","--","train.py"],"env":[]}})";
  ASSERT_TRUE(book().add(sweep));
  EXPECT_FALSE(found("train").value());
  EXPECT_EQ(found("train[1]").value()->job.id, "aaaa1111");
  EXPECT_EQ(found("aaaa1111[lr=2]").value()->row, 1U);
  EXPECT_EQ(code_of(found("train[2]")), Errc::invalid_input);
  EXPECT_EQ(code_of(found("other[1]")), Errc::not_found);
  add("aabb2222", "eval", {"a"});
  EXPECT_EQ(found("eval[1]").error().message, "job aabb2222 is not a sweep, and has no rows");
  owned("rented");
  const auto away = found("rented[1]");
  EXPECT_EQ(away.error().message, "only me@desk has the rows of rented");
  EXPECT_EQ(away.error().hint, "on me@desk: lockstep why 'rented[1]'");
}

TEST_F(FindJobTest, ANumberMayBeThatOfSlurm) {
  EXPECT_EQ(find("7")->place, "slurm") << "submitted without Lockstep";
  EXPECT_EQ(code_of(find("8")), Errc::not_found);
  ASSERT_TRUE(book().add(known()));
  EXPECT_EQ(find("7")->id, "aaaa1111") << "our record says more";
}

// Slurm is asked once, for the explanation.
TEST_F(FindJobTest, ANumberToExplainMeansSlurmsFirst) {
  KnownJob ours = known();
  ours.id = "2f0c9a31";
  ours.name = "train";
  ASSERT_TRUE(book().add(ours));
  const auto found = [&](const std::string& word) { return find_job_to_explain(book(), word); };
  EXPECT_EQ(found("7")->id, "2f0c9a31") << "our record says more";
  EXPECT_EQ(found("2f0c9a31")->name, "train");
  EXPECT_EQ(found("train")->id, "2f0c9a31");
  EXPECT_EQ(found("2")->id, "2") << "the id only begins with the number";
  EXPECT_EQ(found("2")->place, "slurm");
  EXPECT_TRUE(slurm_.asked.empty());
  EXPECT_EQ(code_of(found("other")), Errc::invalid_input);
}

// A user with several jobs has ids that begin with any digit.
TEST_F(FindJobTest, ANumberIsSlurmsEvenIfIdsBeginWithIt) {
  add("71aa1111", "train", {"a"});
  EXPECT_EQ(find("7")->place, "slurm");
  EXPECT_EQ(find("71")->id, "71aa1111") << "Slurm does not know 71";
  add("71bb2222", "train", {"a"});
  EXPECT_EQ(find("7")->place, "slurm");
  EXPECT_EQ(find_job_to_explain(book(), "7")->place, "slurm");
  EXPECT_EQ(find_job_to_explain(book(), "71")->place, "slurm");
  EXPECT_EQ(code_of(find("71")), Errc::invalid_input) << "both, and Slurm has none";
}

TEST_F(FindJobTest, AWordThatMayBeAHostIsAWholeIdOrANumber) {
  const auto found = [&](const std::string& word) { return find_by_id(book(), word, places()); };
  add("12345678", "train", {"a"});
  ASSERT_TRUE(book().add(known()));  // Slurm's 7
  EXPECT_EQ(found("12345678").value()->name, "train");
  EXPECT_EQ(found("7").value()->id, "aaaa1111");
  EXPECT_EQ(found("aaaa1111").value()->id, "aaaa1111");
  for (const char* host : {"train", "aaaa", "bbbb2222"})
    EXPECT_FALSE(found(host).value()) << host;
  EXPECT_EQ(code_of(found("8")), Errc::not_found) << "no host";
  KnownJob other = known();
  other.id = "5aaa1111";
  ASSERT_TRUE(book().add(other));
  EXPECT_EQ(code_of(found("5")), Errc::not_found) << "the id only begins so";
}

// Slurm's number is meant, even if a job on hosts has such a name or an id that begins so.
TEST_F(FindJobTest, ANumberToExplainIsNoJobOnHosts) {
  add("31aa1111", "12", {"a"});
  for (const char* word : {"12", "31"})
    EXPECT_EQ(find_job_to_explain(book(), word)->place, "slurm") << word;
  EXPECT_EQ(find_job_to_explain(book(), "31aa")->id, "31aa1111");
}

TEST_F(FindJobTest, ARunningJobComesBeforeANewerOneThatHasEnded) {
  add("aaaa1111", "train", {"a"});
  add("bbbb2222", "train", {"a"});
  tells("a", "aaaa1111", kRunsThere);
  tells("a", "bbbb2222", kEndedThere);
  EXPECT_EQ(running("train", Several::newest)->id, "aaaa1111");
  EXPECT_EQ(running("train", Several::refuse)->id, "aaaa1111");
  EXPECT_EQ(running("bbbb2222", Several::refuse)->id, "bbbb2222") << "an id means just that job";
}

TEST_F(FindJobTest, ACancelDoesNotGuessAmongRunningJobs) {
  add("aaaa1111", "train", {"a"});
  add("bbbb2222", "train", {"a"});
  tells("a", "aaaa1111", kRunsThere);
  tells("a", "bbbb2222", kRunsThere);
  EXPECT_EQ(running("train", Several::newest)->id, "bbbb2222");
  const auto refused = running("train", Several::refuse);
  EXPECT_EQ(code_of(refused), Errc::invalid_input);
  EXPECT_TRUE(refused.error().message.starts_with("2 jobs are named train: bbbb2222"))
      << refused.error().message;
  EXPECT_NE(refused.error().message.find("aaaa1111 (running on gpus"), std::string::npos);
}

TEST_F(FindJobTest, WithoutARunningJobTheNewestIsMeant) {
  add("aaaa1111", "train", {"a"});
  add("bbbb2222", "train", {"a"}, JobState::failed);
  tells("a", "aaaa1111", kEndedThere);
  EXPECT_EQ(running("train", Several::refuse)->id, "bbbb2222");
}

TEST_F(FindJobTest, OneRunningJobCostsNoQuestion) {
  add("aaaa1111", "train", {"a"});
  EXPECT_EQ(running("train", Several::refuse)->id, "aaaa1111");
  EXPECT_TRUE(asked_.empty());
}

TEST_F(FindJobTest, TheRecordTellsThePlace) {
  const auto opened = [](const KnownJob& record) { return open_job(record); };
  KnownJob local = known();
  local.plan.clear();
  local.id = "pid-1";
  local.place = "this machine";
  EXPECT_NE(dynamic_cast<on_slurm::SlurmJob*>(opened(known()).get()), nullptr);
  KnownJob there = known();
  there.nodes = {host("login")};
  EXPECT_NE(dynamic_cast<on_slurm::LoginJob*>(opened(there).get()), nullptr)
      << "its login host answers";
  EXPECT_NE(dynamic_cast<here::LocalJob*>(opened(local).get()), nullptr);
  local.id = "aaaa1111";
  EXPECT_NE(dynamic_cast<on_hosts::HostsJob*>(opened(local).get()), nullptr)
      << "a cluster may have this name";
}

TEST_F(FindJobTest, AnUnreadableJournalOfRentalsIsNotOneWithoutTheJob) {
  add("aaaa1111", "lab", {"a"});
  readable_ = false;
  EXPECT_EQ(code_of(find("lab")), Errc::corrupt);
  EXPECT_EQ(code_of(running("lab", Several::newest)), Errc::corrupt);
  EXPECT_EQ(code_of(find_job_to_explain(book(), "other", places())), Errc::corrupt);
  EXPECT_EQ(code_of(find("me@host")), Errc::not_found) << "no cluster has this name";
  EXPECT_EQ(find("7").value().place, "slurm");
  EXPECT_EQ(code_of(find("pid-999999999")), Errc::not_found);
  EXPECT_TRUE(owned_jobs(places()).empty()) << "a list may miss a job";
}

TEST_F(FindJobTest, AJobOfAnotherOwnerComesBeforeOthersOfItsName) {
  add("aaaa1111", "lab", {"a"});
  owned("lab", "cccc3333");
  for (const char* word : {"lab", "cccc3333"}) {
    EXPECT_EQ(find(word)->place, "me@desk");
    EXPECT_EQ(running(word, Several::refuse)->id, "cccc3333");
    EXPECT_EQ(find_job_to_explain(book(), word, places())->id, "cccc3333");
  }
  EXPECT_EQ(find("aaaa1111")->place, "gpus");
  EXPECT_EQ(find_by_id(book(), "cccc3333", places()).value()->name, "lab");
  EXPECT_FALSE(find_by_id(book(), "lab", places()).value()) << "its machines";
  const auto job = open_job(find("lab").value(), places());
  EXPECT_EQ(job->facts().owner, "me@desk");
  EXPECT_EQ(job->status()->state, JobState::running);
  EXPECT_EQ(open_job(find("aaaa1111").value(), places())->facts().owner, "");
}

}  // namespace
}  // namespace lockstep::jobs::places
