#include "jobs/on_slurm/login_submit.h"

#include "base/error_testing.h"
#include "base/exit_codes.h"
#include "codec/json.h"
#include "jobs/on_slurm/slurm_submit.h"

#include <gtest/gtest.h>

#include <signal.h>
#include <stdlib.h>

#include <deque>
#include <filesystem>

namespace lockstep::jobs::on_slurm {
namespace {

TEST(LoginSubmit, TheHostReadsWhatItIsTold) {
  const LoginRequest request{.id = "a1b2c3d4",
                             .folder = "an 'odd' place",
                             .words = {"--json", "-N2", "--", "train.py", "a\nb"},
                             .env = {"KEY=s3cret", "EMPTY="},
                             .preview = true};
  const auto read = parse_request(request_text(request));
  ASSERT_TRUE(read);
  EXPECT_EQ(read->id, request.id);
  EXPECT_EQ(read->folder, request.folder);
  EXPECT_EQ(read->words, request.words);
  EXPECT_EQ(read->env, request.env);
  EXPECT_TRUE(read->preview);
}

TEST(LoginSubmit, OtherRequestsAreRefused) {
  for (const char* text : {"", "[]", "{}", R"({"id":"a1b2c3d4"})", R"({"id":"../x","folder":"p"})",
                           R"({"id":"a/../../b","folder":"p"})", R"({"id":7,"folder":"p"})"})
    EXPECT_FALSE(parse_request(text)) << text;
  const auto odd =
      parse_request(R"({"id":"a1b2c3d4","folder":"p","words":[1,"x"],"env":{},"preview":1})");
  ASSERT_TRUE(odd);
  EXPECT_EQ(odd->words, std::vector<std::string>{"x"});
  EXPECT_FALSE(odd->preview);
}

// A client without its login host: the test answers.
class LoginHostTest : public ::testing::Test {
 protected:
  using Ms = std::chrono::milliseconds;

  LoginHostTest() {
    std::string name = "/tmp/lockstep-login-XXXXXX";
    folder_ = mkdtemp(name.data());
  }
  ~LoginHostTest() override { std::filesystem::remove_all(folder_); }

  LoginWorld world() {
    return {.run = [this](io::Loop&, const hosts::CommandRequest& request)
                -> Result<std::vector<hosts::HostEnding>> {
              asked_.push_back(request);
              hosts::HostEnding ending = answers_.front();
              if (answers_.size() > 1) answers_.pop_front();
              return std::vector<hosts::HostEnding>{std::move(ending)};
            },
            .now = [this] { return LoginWorld::Clock::time_point(time_); },
            .sleep = [this](Ms pause) { time_ += pause; }};
  }
  jobs::JobBook book() const { return jobs::JobBook::open(folder_).value(); }
  // A job whose submission was cut off.
  jobs::KnownJob interrupted() const {
    jobs::KnownJob job{.id = "a1b2c3d4", .name = "train", .place = "hpc", .command = "train.py"};
    job.nodes = {login_};
    job.plan = plan_text(SlurmPlace());
    job.status = {.state = JobState::starting};
    EXPECT_TRUE(book().add(job));
    return job;
  }

  const hosts::HostPlace login_{.name = "login", .target = {.host = "login"}};
  const LoginRequest request_{.id = "a1b2c3d4", .folder = "project"};
  const hosts::HostEnding lost_{.code = 255, .error = "login: the connection broke"};
  const hosts::HostEnding stopped_{.code = 130, .error = "stopped"};
  const hosts::HostEnding done_{.out = R"({"name":"train","job":"7","output":"/o","folder":"/f"})"};
  std::string folder_;
  std::deque<hosts::HostEnding> answers_;
  std::vector<hosts::CommandRequest> asked_;
  Ms time_{0};
};

TEST_F(LoginHostTest, ALostConnectionRepeatsTheSameRequest) {
  answers_ = {lost_, lost_, done_};
  const auto there = submit_on_login(login_, request_, world());
  ASSERT_TRUE(there) << there.error().message;
  EXPECT_EQ(there->job, "7");
  EXPECT_EQ(there->output, "/o");
  ASSERT_EQ(asked_.size(), 3U);
  EXPECT_EQ(asked_[2].given, asked_[0].given) << "the host submits one job for one id";
  EXPECT_GT(time_.count(), 0);
}

TEST_F(LoginHostTest, AHostThatStaysAwayLeavesTheAnswerOpen) {
  answers_ = {lost_};
  const auto unknown = submit_on_login(login_, request_, world());
  EXPECT_EQ(code_of(unknown), Errc::unavailable);
  EXPECT_NE(unknown.error().message.find("job a1b2c3d4 may or may not have been submitted"),
            std::string::npos)
      << unknown.error().message;
  EXPECT_GE(time_, std::chrono::minutes(2));
  EXPECT_LT(asked_.size(), 60U) << "the pauses grow";
}

TEST_F(LoginHostTest, ASignalEndsTheRepeating) {
  answers_ = {lost_, stopped_};
  const auto left = submit_on_login(login_, request_, world());
  EXPECT_EQ(code_of(left), Errc::canceled);
  EXPECT_EQ(left.error().sys, SIGINT);
}

TEST_F(LoginHostTest, ARefusalThereIsPassedOn) {
  answers_ = {{.code = 2}};
  EXPECT_EQ(submit_on_login(login_, request_, world())->code, 2);
  answers_ = {{.code = 1, .error = "login: no such folder"}};
  EXPECT_EQ(submit_on_login(login_, request_, world()).error().message, "login: no such folder");
}

TEST_F(LoginHostTest, AnAnswerThatNamesNoJobIsShown) {
  for (const char* text : {"", "welcome to login", "[]", "{}", R"({"job":7})"}) {
    answers_ = {{.out = text}};
    const auto odd = submit_on_login(login_, request_, world());
    EXPECT_EQ(code_of(odd), Errc::corrupt) << text;
    EXPECT_TRUE(odd.error().message.starts_with("login: unexpected answer: ")) << text;
  }
}

TEST_F(LoginHostTest, OnlyAHostWithSbatchIsALoginHost) {
  answers_ = {{.code = 0}};
  EXPECT_TRUE(check_login(login_, world()));
  answers_ = {{.code = kExitNotFound}};
  EXPECT_EQ(check_login(login_, world()).error().message,
            "login has no sbatch in PATH: the host must be a Slurm login host");
  answers_ = {{.code = 1}};
  EXPECT_EQ(check_login(login_, world()).error().message, "login can't submit jobs");
  answers_ = {lost_};
  EXPECT_EQ(code_of(check_login(login_, world())), Errc::unavailable);
  answers_ = {stopped_};
  EXPECT_EQ(check_login(login_, world()).error().sys, SIGINT);
}

TEST_F(LoginHostTest, APreviewIsPrintedThere) {
  answers_ = {{.code = 3}};
  EXPECT_EQ(*preview_on_login(login_, request_, world()), 3);
  EXPECT_EQ(asked_[0].output, hosts::CommandRequest::Output::print);
  answers_ = {lost_};
  EXPECT_EQ(code_of(preview_on_login(login_, request_, world())), Errc::unavailable);
}

TEST_F(LoginHostTest, ASubmissionIsRecordedWithItsNumber) {
  jobs::KnownJob job{.id = "a1b2c3d4", .name = "train", .place = "hpc", .command = "train.py"};
  job.nodes = {login_};
  answers_ = {done_};
  ASSERT_TRUE(submit_recorded(book(), job, request_, world()));
  EXPECT_EQ(job.status.state, JobState::queued);
  EXPECT_EQ(book().find("7")->id, "a1b2c3d4");
  EXPECT_EQ(slurm_place(*book().find("7"))->folder, "/f");
}

// No answer says nothing about the job: only a refusal does.
TEST_F(LoginHostTest, OnlyARefusedSubmissionLeavesNoRecord) {
  jobs::KnownJob job{.id = "a1b2c3d4", .name = "train", .place = "hpc", .command = "train.py"};
  job.nodes = {login_};
  answers_ = {{.code = 1}};
  EXPECT_EQ(submit_recorded(book(), job, request_, world())->code, 1);
  EXPECT_EQ(code_of(book().find("a1b2c3d4")), Errc::not_found);
  answers_ = {stopped_};
  EXPECT_EQ(code_of(submit_recorded(book(), job, request_, world())), Errc::canceled);
  EXPECT_EQ(book().find("a1b2c3d4")->status.state, JobState::starting);
}

TEST_F(LoginHostTest, AnInterruptedSubmissionIsFoundLater) {
  auto job = interrupted();
  answers_ = {done_};
  ASSERT_TRUE(complete_submission(book(), job, world()));
  EXPECT_EQ(job.status.state, JobState::queued);
  const auto found = book().find("7");
  ASSERT_TRUE(found);
  EXPECT_EQ(found->id, "a1b2c3d4");
  EXPECT_EQ(slurm_place(*found)->output, "/o");
  asked_.clear();
  ASSERT_TRUE(complete_submission(book(), job, world()));
  EXPECT_TRUE(asked_.empty()) << "its number is known now";
}

TEST_F(LoginHostTest, ASubmissionThatNeverArrivedIsLost) {
  auto job = interrupted();
  answers_ = {{.code = kNotSubmitted}};
  ASSERT_TRUE(complete_submission(book(), job, world()));
  EXPECT_EQ(book().find("a1b2c3d4")->status.state, JobState::lost);
}

// `lockstep jobs` lists the jobs of all hosts: no answer of one host may end it.
TEST_F(LoginHostTest, AHostWithoutAnAnswerLeavesTheJobAsItIs) {
  auto job = interrupted();
  for (const hosts::HostEnding& answer :
       {lost_, stopped_, hosts::HostEnding{.code = 1}, hosts::HostEnding{.out = "welcome"},
        hosts::HostEnding{.out = "{}"}}) {
    answers_ = {answer};
    EXPECT_TRUE(complete_submission(book(), job, world())) << answer.out;
    EXPECT_EQ(book().find("a1b2c3d4")->status.state, JobState::starting);
  }
}

}  // namespace
}  // namespace lockstep::jobs::on_slurm
