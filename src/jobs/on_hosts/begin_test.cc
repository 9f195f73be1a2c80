#include "jobs/on_hosts/begin.h"

#include "base/error_testing.h"
#include "codec/json.h"
#include "job/job_spec.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace lockstep::jobs::on_hosts {
namespace {

hosts::HostEnding answer_of(job::Stage stage, std::int64_t started_ms = 0) {
  job::JobRecord record;
  record.spec.id = "aaaa1111";
  record.spec.name = "train.py";
  record.spec.run = {"train.py"};
  record.state.stage = stage;
  record.state.started_ms = started_ms;
  hosts::HostEnding ending;
  ending.out = codec::print_json(nlohmann::ordered_json::array({job::to_json(record)}));
  return ending;
}

hosts::HostEnding answer_text(std::string text, int code = 0) {
  hosts::HostEnding ending;
  ending.out = std::move(text);
  ending.code = code;
  return ending;
}

TEST(BegunParts, AllHostsRunOrHaveRunTheJob) {
  const auto parts =
      begun_parts("aaaa1111", {answer_of(job::Stage::running), answer_of(job::Stage::queued),
                               answer_of(job::Stage::ended)});
  ASSERT_TRUE(parts);
  EXPECT_TRUE(parts->all_begun);
  EXPECT_EQ(parts->known, (std::vector<bool>{true, true, true}));
}

TEST(BegunParts, OneHostWasNotToldToGo) {
  const auto prepared =
      begun_parts("aaaa1111", {answer_of(job::Stage::running), answer_of(job::Stage::prepared)});
  ASSERT_TRUE(prepared);
  EXPECT_FALSE(prepared->all_begun);
  EXPECT_EQ(prepared->known, (std::vector<bool>{true, true}));
  // The client of a part that begins again was killed, and the folder stayed.
  const auto left = begun_parts("aaaa1111", {answer_of(job::Stage::lost)});
  ASSERT_TRUE(left);
  EXPECT_FALSE(left->all_begun);
  EXPECT_TRUE(begun_parts("aaaa1111", {answer_of(job::Stage::lost, 5)})->all_begun) << "it ran";
  const auto unknown = begun_parts("aaaa1111", {answer_of(job::Stage::running), answer_text("[]")});
  ASSERT_TRUE(unknown);
  EXPECT_FALSE(unknown->all_begun);
  EXPECT_EQ(unknown->known, (std::vector<bool>{true, false}));
}

TEST(BegunParts, AHostThatDoesNotAnswerMayRunTheJob) {
  for (const auto& bad : {answer_text("[]", 1), answer_text(""), answer_text("{}")}) {
    const auto parts = begun_parts("aaaa1111", {answer_of(job::Stage::running), bad});
    ASSERT_FALSE(parts) << bad.out;
    EXPECT_EQ(code_of(parts), Errc::unavailable);
  }
  // A record that makes no sense is no beginning, and the host is told to cancel what it has.
  const auto hostile = begun_parts("aaaa1111", {answer_text("[7]")});
  ASSERT_TRUE(hostile);
  EXPECT_FALSE(hostile->all_begun);
  EXPECT_EQ(hostile->known, std::vector<bool>{true});
}

class BeginTest : public ::testing::Test {
 protected:
  BeginTest() {
    std::string name = std::filesystem::temp_directory_path() / "begin-XXXXXX";
    folder_ = mkdtemp(name.data());
    book_.emplace(*JobBook::open(folder_));
    job_.id = "aaaa1111";
    job_.name = "train.py";
    job_.nodes = {{.name = "a", .target = {.host = "a"}}};
    job_.status.state = JobState::starting;
  }
  ~BeginTest() override { std::filesystem::remove_all(folder_); }

  Result<StartedJob> begin_job() {
    JobRequest request;
    request.hosts = job_.nodes;
    return begin(*book_, request, job_,
                 {.recorded = [this](const std::string&) { return recorded_; }},
                 {.start = [this](const JobRequest& asked) {
                   resumes_ = asked.spec.resumes;
                   return started_;
                 }});
  }
  Result<bool> settle() {
    return settle_beginning(*book_, job_, [this](io::Loop&, const hosts::CommandRequest& asked) {
      verbs_.push_back(asked.argv[1]);
      return Result<std::vector<hosts::HostEnding>>(
          std::vector<hosts::HostEnding>{answers_[asked.argv[1]]});
    });
  }
  std::optional<KnownJob> record() const {
    auto found = book_->find("aaaa1111");
    return found ? std::optional(std::move(*found)) : std::nullopt;
  }

  std::string folder_;
  std::optional<JobBook> book_;
  KnownJob job_;
  Status recorded_;
  Result<StartedJob> started_;
  std::optional<bool> resumes_;  // of the request to the hosts
  std::map<std::string, hosts::HostEnding> answers_;
  std::vector<std::string> verbs_;
};

TEST_F(BeginTest, AJobThatBeganIsRunning) {
  ASSERT_TRUE(begin_job());
  EXPECT_EQ(record()->status.state, JobState::running);
  EXPECT_EQ(resumes_, false);
}

TEST_F(BeginTest, AnErrorBeforeTheHostsAreToldStartsNothing) {
  recorded_ = fail(Errc::unavailable, "the journal");
  const auto started = begin_job();
  ASSERT_FALSE(started);
  EXPECT_EQ(started.error().message, "the journal");
  EXPECT_EQ(resumes_, std::nullopt);
  EXPECT_FALSE(record());
}

// The course of a rented job goes on without this attempt: viewers need a record of the job.
TEST_F(BeginTest, AnAttemptThatCannotStartBringsTheRecordBack) {
  KnownJob earlier = job_;
  earlier.nodes[0].name = "old";
  earlier.plan = "{}";
  earlier.status = {.state = JobState::failed, .code = 143, .ended_ms = 5};
  ASSERT_TRUE(book_->add(earlier));
  started_ = fail(Errc::unavailable, "no room on /home");
  EXPECT_EQ(begin_job().error().message, "no room on /home");
  ASSERT_TRUE(record());
  EXPECT_EQ(record()->nodes[0].name, "old");
  EXPECT_EQ(record()->plan, "{}");
  EXPECT_EQ(record()->status.state, JobState::failed);
  EXPECT_EQ(record()->status.code, 143);
}

TEST_F(BeginTest, ARecordThatOnlyHasTheIdAsItsNameIsAnotherJob) {
  KnownJob other = job_;
  other.id = "bbbb2222";
  other.name = "aaaa1111";
  ASSERT_TRUE(book_->add(other));
  started_ = fail(Errc::unavailable, "no room on /home");
  EXPECT_FALSE(begin_job());
  EXPECT_EQ(resumes_, false);
  EXPECT_EQ(book_->list(9)->size(), 1U);
  EXPECT_EQ(record()->id, "bbbb2222");
}

TEST_F(BeginTest, AJobThatRanIsNotAskedAbout) {
  job_.status.state = JobState::running;
  EXPECT_TRUE(*settle());
  EXPECT_TRUE(verbs_.empty());
}

// The process of the course was killed after the hosts got the word to go.
TEST_F(BeginTest, AJobThatAllHostsHaveBegunIsNotedAsRunning) {
  ASSERT_TRUE(book_->add(job_));
  answers_["status"] = answer_of(job::Stage::running);
  EXPECT_TRUE(*settle());
  EXPECT_EQ(record()->status.state, JobState::running);
}

// Viewers follow the job by its id: another id would be the end of this one for them.
TEST_F(BeginTest, ABeginningThatWasCutOffBeginsAgainUnderItsId) {
  ASSERT_TRUE(book_->add(job_));
  answers_["status"] = answer_of(job::Stage::prepared);
  answers_["cancel"] = answer_text("[]");
  EXPECT_FALSE(*settle());
  EXPECT_EQ(verbs_, (std::vector<std::string>{"status", "cancel"}));
  ASSERT_TRUE(record());
  EXPECT_EQ(record()->status.state, JobState::starting);
  ASSERT_TRUE(begin_job());
  EXPECT_EQ(resumes_, true) << "the host may have a folder of this id";
}

}  // namespace
}  // namespace lockstep::jobs::on_hosts
