// A Slurm job on a login host elsewhere, without any host: the test answers for it.
#include "jobs/on_slurm/login_job.h"

#include "base/error_testing.h"
#include "codec/json.h"
#include "jobs/on_slurm/slurm_once.h"
#include "jobs/on_slurm/slurm_requests.h"
#include "jobs/on_slurm/slurm_world_testing.h"

namespace lockstep::jobs::on_slurm {
namespace {

class LoginJobTest : public SlurmWorldTest {
 protected:
  LoginJobTest() { EXPECT_TRUE(note_submitted(slurm::JobFolder(place_.folder), known())); }
  LoginJob job() {
    KnownJob there = known();
    there.nodes = {{.name = "login", .target = {.host = "login"}}};
    return {std::move(there), place_, {.run = [this](io::Loop&, const auto& request) {
              return answer(request.argv);
            }}};
  }
  // The answer of the binary on the login host.
  Result<std::vector<hosts::HostEnding>> answer(const std::vector<std::string>& argv) {
    asked_.push_back(argv);
    if (!reached_) return std::vector<hosts::HostEnding>{{.code = 255, .error = "login: no route"}};
    if (!refusal_.empty())
      return std::vector<hosts::HostEnding>{{.code = 1, .err = "welcome\n" + refusal_ + "\n"}};
    printed_.clear();
    if (odd_.empty()) {
      EXPECT_TRUE(serve_slurm_request({argv.begin() + 1, argv.end()}, world()));
    }
    return std::vector<hosts::HostEnding>{{.out = odd_.empty() ? printed_ : odd_}};
  }

  bool reached_ = true;
  std::string odd_;
  std::string refusal_;  // what the binary says before it exits with code 1
  std::vector<std::vector<std::string>> asked_;
};

TEST_F(LoginJobTest, OnlySlurmResumesItsJobsThereToo) {
  slurm_.knows = false;  // the job is lost
  const auto refused = job().resume({});
  EXPECT_EQ(code_of(refused), Errc::invalid_input) << refused.error().message;
  EXPECT_NE(refused.error().hint.find("scontrol requeue 7"), std::string::npos);
  EXPECT_TRUE(asked_.empty());
}

TEST_F(LoginJobTest, AJobWhoseSubmissionWasInterruptedHasNoNumberYet) {
  place_.job.clear();
  EXPECT_EQ(job().resume({}).error().hint, "submit it again");
  EXPECT_EQ(job().id_for_people(), "aaaa1111");
}

TEST_F(LoginJobTest, ItsNumberAndOutputAreKnownHere) {
  EXPECT_EQ(job().id_for_people(), "7");
  EXPECT_EQ(job().facts().output, top_ + "/out");
  EXPECT_FALSE(job().facts().earlier);
}

TEST_F(LoginJobTest, TheLoginHostSaysWhy) {
  slurm_.state = "PENDING";
  slurm_.reason = "Priority";
  const auto said = job().why();
  ASSERT_TRUE(said) << said.error().message;
  EXPECT_NE(said->text.find("Priority"), std::string::npos) << said->text;
  EXPECT_EQ(said->json["jobs"][0]["ids"][0], "7");
  EXPECT_EQ(asked_, (std::vector<std::vector<std::string>>{{"host-job", "report", "aaaa1111"}}));
}

TEST_F(LoginJobTest, ItsErrorsComeWithTheirHint) {
  slurm_.knows = false;
  const auto unknown = job().why();
  EXPECT_EQ(unknown.error().message, "Slurm knows no job 7");
  EXPECT_FALSE(unknown.error().hint.empty());
  reached_ = false;
  EXPECT_EQ(code_of(job().why()), Errc::unavailable);
}

TEST_F(LoginJobTest, AnErrorOfTheLoginHostIsShown) {
  refusal_ = "lockstep host-job: error: no job\x1b[2J aaaa1111";
  const auto refused = job().why();
  EXPECT_EQ(code_of(refused), Errc::not_found);
  EXPECT_EQ(refused.error().message, "login: lockstep host-job: error: no job\\x1b[2J aaaa1111");
}

TEST_F(LoginJobTest, TheLoginHostAsksTheNodes) {
  slurm_.step = FakeSlurm::says(
      "0: [" + looks::rows_json({.node = "n1", .rows = {{.rank = 0, .node = "n1"}}}) + "]\n");
  const auto nodes = job().ranks();
  ASSERT_TRUE(nodes) << nodes.error().message;
  ASSERT_EQ(nodes->size(), 1U);
  EXPECT_EQ(nodes->at(0).node, "n1");
  EXPECT_EQ(asked_, (std::vector<std::vector<std::string>>{{"host-job", "ranks", "aaaa1111"}}));
  EXPECT_EQ(slurm_.steps.size(), 1U);
}

TEST_F(LoginJobTest, ThePageIsReachedThroughTheLoginHost) {
  slurm_.nodes = "n[1-3]";
  const page::PageAnswer other{.node = "n1", .place = 9, .group_rank = 1};
  const page::PageAnswer serves{.node = "n3",
                                .group_rank = 2,
                                .host = "127.0.0.1",
                                .port = 4007,
                                .token = "0123456789abcdef"};
  slurm_.step = FakeSlurm::says("0: [" + page_answer_json(other) + "]\n2: [" +
                                page_answer_json(serves) + "]\n");
  const auto found = job().page(2);
  ASSERT_TRUE(found) << found.error().message;
  EXPECT_EQ(asked_, (std::vector<std::vector<std::string>>{{"host-job", "page", "aaaa1111", "2"}}));
  EXPECT_EQ(slurm_.steps.at(0).back(), "2");
  ASSERT_EQ(found->size(), 2U);
  EXPECT_EQ(found->at(0).page.place, 0) << "srun says which node has answered";
  const PageThere& there = found->at(1);
  EXPECT_EQ(there.page.port, 4007);
  EXPECT_FALSE(there.is_here());
  ASSERT_TRUE(there.link);
  EXPECT_EQ(std::vector<std::string>(there.link->argv.begin() + 1, there.link->argv.end()),
            (std::vector<std::string>{"link", "--through-login", "aaaa1111", "2"}));
}

TEST_F(LoginJobTest, APageThatIsNotReachedHasOneReason) {
  reached_ = false;
  EXPECT_EQ(code_of(job().page(0)), Errc::unavailable);
  EXPECT_EQ(job().page(0).error().message, "login: no route");
  reached_ = true;
  refusal_ = "lockstep host-job: error: ask the nodes of job 7: srun: Busy";
  EXPECT_EQ(job().page(0).error().message, "login: " + refusal_);
}

TEST_F(LoginJobTest, AHostileAnswerIsNotPrintedAsItIs) {
  for (const char* odd : {"welcome", "[]", "{}", R"({"text":7})", "\x1b[2J"}) {
    odd_ = odd;
    EXPECT_EQ(code_of(job().why()), Errc::corrupt) << odd;
  }
  odd_ = R"({"text":"a\u001b[2Jb\nc\n"})";
  const auto said = job().why();
  ASSERT_TRUE(said) << said.error().message;
  EXPECT_EQ(said->text.find('\x1b'), std::string::npos);
  EXPECT_TRUE(said->text.ends_with("\nc\n")) << said->text;
  EXPECT_TRUE(said->json.is_null());
}

}  // namespace
}  // namespace lockstep::jobs::on_slurm
