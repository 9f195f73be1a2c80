// What the binary on a login host answers a client elsewhere.
#include "jobs/on_slurm/slurm_requests.h"

#include "jobs/job_status.h"
#include "jobs/on_slurm/slurm_once.h"
#include "jobs/on_slurm/slurm_world_testing.h"
#include "page/page_answer.h"

#include <limits>

namespace lockstep::jobs::on_slurm {
namespace {

using std::chrono::seconds;

class SlurmRequestsTest : public SlurmWorldTest {
 protected:
  SlurmRequestsTest() { EXPECT_TRUE(note_submitted(slurm::JobFolder(place_.folder), known())); }
  std::optional<Result<int>> serve(const std::vector<std::string>& words) {
    printed_.clear();
    return serve_slurm_request(words, world());
  }
  // The client's view of the answer.
  job::PartState part(const std::string& verb) {
    const auto code = serve({verb, "aaaa1111"});
    EXPECT_TRUE(code && *code && **code == 0);
    const auto record = parse_status(printed_);
    EXPECT_TRUE(record && *record) << printed_;
    if (!record || !*record) return {};
    EXPECT_EQ((*record)->spec.id, "aaaa1111");
    EXPECT_EQ((*record)->spec.name, "train");
    return (*record)->state;
  }
};

TEST_F(SlurmRequestsTest, TheClientSeesTheStateAsThatOfAHost) {
  EXPECT_EQ(part("status").stage, job::Stage::running);
  slurm_.state = "PENDING";
  EXPECT_EQ(part("status").stage, job::Stage::queued);
  slurm_.state = "CONFIGURING";
  EXPECT_EQ(part("status").stage, job::Stage::prepared);
  keep(ended("worker", 3));
  EXPECT_EQ(part("status").stage, job::Stage::ended);
  EXPECT_EQ(part("status").code, 3);
  EXPECT_FALSE(part("status").canceled);
  std::filesystem::remove(place_.folder + "/state.json");
  slurm_.knows = false;
  EXPECT_EQ(part("status").stage, job::Stage::lost);
}

TEST_F(SlurmRequestsTest, ACanceledJobIsCanceledForTheClientToo) {
  at(seconds(5), [this] {
    keep(ended("stopped", 143));
    slurm_.state = "CANCELLED";
  });
  const job::PartState end = part("cancel");
  EXPECT_EQ(end.stage, job::Stage::ended);
  EXPECT_TRUE(end.canceled);
  EXPECT_EQ(end.code, 143);
}

// No record at all would read as "no such job is known there".
TEST_F(SlurmRequestsTest, ASilentSlurmIsAnErrorAndNoState) {
  slurm_.answers = false;
  const auto code = serve({"status", "aaaa1111"});
  ASSERT_TRUE(code);
  EXPECT_FALSE(*code);
  EXPECT_EQ(printed_, "");
}

TEST_F(SlurmRequestsTest, OutputGoesOnAtTheClientsByte) {
  write_output("one\ntwo\n");
  EXPECT_TRUE(*serve({"print", "aaaa1111", "4", "0"}));
  EXPECT_EQ(printed_, "two\n");
  at(seconds(5), [this] {
    write_output("one\ntwo\nthree\n");
    keep(ended("success", 0));
  });
  EXPECT_TRUE(*serve({"follow", "aaaa1111", "4", "0"}));
  EXPECT_EQ(printed_, "two\nthree\n");
}

TEST_F(SlurmRequestsTest, AClientThatOnlyWaitsGetsNoOutput) {
  write_output("one\n");
  keep(ended("success", 0));
  const std::string behind = std::to_string(std::numeric_limits<std::int64_t>::max() / 2);
  EXPECT_TRUE(*serve({"follow", "aaaa1111", behind, behind}));
  EXPECT_EQ(printed_, "");
}

TEST_F(SlurmRequestsTest, TheLastLinesBeginAtAByte) {
  write_output("one\ntwo\n");
  EXPECT_TRUE(*serve({"places", "aaaa1111", "1"}));
  EXPECT_EQ(printed_, "{\"out\":4,\"err\":0}\n");
  // The job's output path has a pattern that only Slurm can fill in.
  slurm_.output = place_.output;
  place_.output.clear();
  ASSERT_TRUE(note_submitted(slurm::JobFolder(place_.folder), known()));
  EXPECT_TRUE(*serve({"places", "aaaa1111", "1"}));
  EXPECT_EQ(printed_, "{\"out\":4,\"err\":0}\n");
}

TEST_F(SlurmRequestsTest, ARequestWithoutItsNumbersIsRefused) {
  for (const std::vector<std::string>& words : {std::vector<std::string>{"follow", "aaaa1111"},
                                                {"follow", "aaaa1111", "x", "0"},
                                                {"print", "aaaa1111", "-1", "0"},
                                                {"places", "aaaa1111"}}) {
    const auto code = serve(words);
    ASSERT_TRUE(code);
    EXPECT_EQ(code->error().code, Errc::invalid_input);
  }
}

TEST_F(SlurmRequestsTest, AnswersOfTheAgentsArePassedOn) {
  slurm_.step = FakeSlurm::says("1: [{\"node\": \"n2\"}]\n0: [{\"node\": \"n1\"}]\n");
  EXPECT_TRUE(*serve({"looks", "aaaa1111", "rank=3&native"}));
  EXPECT_EQ(printed_, "[{\"node\":\"n1\"},{\"node\":\"n2\"}]\n");
  EXPECT_EQ(slurm_.steps.back().back(), "rank=3&native");
  EXPECT_TRUE(*serve({"ranks", "aaaa1111"}));
  EXPECT_TRUE(*serve({"events", "aaaa1111"}));
  EXPECT_EQ(slurm_.steps.back().back(), "0");
  EXPECT_EQ(slurm_.steps.size(), 3U);
  slurm_.step = FakeSlurm::fails("srun: error: no\n");
  EXPECT_EQ(serve({"ranks", "aaaa1111"})->error().code, Errc::unavailable);
  EXPECT_EQ(printed_, "");
  EXPECT_EQ(serve({"looks", "aaaa1111", "x"})->error().code, Errc::invalid_input);
}

TEST_F(SlurmRequestsTest, ThePageOfANodeComesWithItsPlace) {
  slurm_.nodes = "n[1-2]";
  slurm_.step = FakeSlurm::says("1: [" + page::page_answer_json({.node = "n2"}) + ", 7]\n");
  EXPECT_TRUE(*serve({"page", "aaaa1111", "5"}));
  EXPECT_EQ(slurm_.steps.back().back(), "5");
  EXPECT_NE(printed_.find(R"("place":1)"), std::string::npos) << printed_;
  EXPECT_EQ(serve({"page", "aaaa1111"})->error().code, Errc::invalid_input);
  EXPECT_FALSE(*serve({"page", "aaaa1111", "4294967296"})) << "2^32 is no other name of node 0";
}

TEST_F(SlurmRequestsTest, AProfileGoesThroughTheLoginHost) {
  slurm_.step = FakeSlurm::says("0: [{\"node\": \"n1\"}]\n");
  EXPECT_TRUE(*serve({"profile", "aaaa1111", "do=end&id=7"}));
  EXPECT_EQ(printed_, "[{\"node\":\"n1\"}]\n");
  EXPECT_EQ(slurm_.steps.back().back(), "do=end&id=7");
  EXPECT_EQ(serve({"profile", "aaaa1111", "do=x"})->error().code, Errc::invalid_input);
  const std::string folder = place_.folder + "/lockstep-profile-x";
  std::filesystem::create_directory(folder);
  ASSERT_TRUE(io::write_file(folder + "/profile-7-rank-3_99.json", "trace"));
  EXPECT_TRUE(*serve({"profile-trace", "aaaa1111", folder, "7", "3"}));
  EXPECT_EQ(printed_, "trace");
  EXPECT_EQ(serve({"profile-trace", "aaaa1111", folder, "7"})->error().code, Errc::invalid_input);
  EXPECT_FALSE(*serve({"profile-trace", "aaaa1111", folder, "7", "4294967299"}));
  EXPECT_EQ(serve({"profile-trace", "aaaa1111", "/etc", "7", "3"})->error().code, Errc::denied);
}

// The words go on to the jobs that run on this host itself.
TEST_F(SlurmRequestsTest, RequestsAboutOtherJobsAreNotAnswered) {
  for (const std::vector<std::string>& words : {std::vector<std::string>{},
                                                {"status"},
                                                {"status", "bbbb2222"},
                                                {"status", "../../x"},
                                                {"dance", "aaaa1111"},
                                                {"start", "aaaa1111"}})
    EXPECT_FALSE(serve(words));
}

}  // namespace
}  // namespace lockstep::jobs::on_slurm
