// A Slurm job on a login host elsewhere, without any host: the test answers for it.
#include "jobs/on_slurm/login_job.h"

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
      EXPECT_TRUE(serve_slurm_request({argv[1], argv[2]}, world()));
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
  EXPECT_EQ(refused.error().code, Errc::invalid_input) << refused.error().message;
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
  EXPECT_EQ(job().why().error().code, Errc::unavailable);
}

TEST_F(LoginJobTest, AnErrorOfTheLoginHostIsShown) {
  refusal_ = "lockstep host-job: error: no job\x1b[2J aaaa1111";
  const auto refused = job().why();
  EXPECT_EQ(refused.error().code, Errc::not_found);
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

TEST_F(LoginJobTest, ThePageIsReachedFromTheLoginHost) {
  const auto refused = job().page(0);
  EXPECT_EQ(refused.error().code, Errc::invalid_input);
  EXPECT_EQ(refused.error().message, "only login reaches the nodes of job 7");
  EXPECT_EQ(refused.error().hint,
            "on login: lockstep page 7; then here: lockstep forward login PORT");
  EXPECT_NE(job().page(2).error().hint.find("lockstep page --node 2 7;"), std::string::npos);
  EXPECT_TRUE(asked_.empty());
}

TEST_F(LoginJobTest, AHostileAnswerIsNotPrintedAsItIs) {
  for (const char* odd : {"welcome", "[]", "{}", R"({"text":7})", "\x1b[2J"}) {
    odd_ = odd;
    EXPECT_EQ(job().why().error().code, Errc::corrupt) << odd;
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
