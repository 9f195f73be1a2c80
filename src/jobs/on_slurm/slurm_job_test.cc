#include "jobs/on_slurm/slurm_job.h"

#include "base/error_testing.h"
#include "base/text.h"
#include "codec/json.h"
#include "io/fd.h"
#include "jobs/on_slurm/slurm_world_testing.h"

#include <fmt/core.h>

#include <filesystem>
#include <string>

namespace lockstep::jobs::on_slurm {
namespace {

using std::chrono::seconds;

class SlurmJobTest : public SlurmWorldTest {
 protected:
  SlurmJob job() { return {known(), place_, world()}; }
  // The agent of a node has noted a hang and kept its evidence.
  void report_hang(const std::string& node) {
    const nlohmann::json report = {
        {"node", node},
        {"outcome", "failed"},
        {"attempts_total", 1},
        {"attempts", {{{"log_dir", "/logs/a"}}}},
        {"events", {{{"event", "hung"}, {"attempt", 1}, {"words", "hung for 7 s: \x1b[2J"}}}}};
    std::filesystem::create_directory(place_.folder + "/reports");
    EXPECT_TRUE(
        io::write_file(fmt::format("{}/reports/0-{}.json", place_.folder, node), report.dump()));
  }
};

TEST_F(SlurmJobTest, ACancelWaitsForTheRanksToSaveTheirWork) {
  at(seconds(40), [this] {
    keep(ended("stopped", 143));
    slurm_.state = "CANCELLED";
  });
  const auto status = job().cancel();
  ASSERT_TRUE(status) << status.error().message;
  EXPECT_EQ(slurm_.canceled, std::vector<std::string>{"7"});
  EXPECT_EQ(status->state, JobState::canceled);
  EXPECT_EQ(status->code, 143);
  EXPECT_GE(time_, seconds(40));
}

TEST_F(SlurmJobTest, ACancelThatSlurmRefusesIsAnErrorInSlurmsWords) {
  slurm_.refusal = "Kill job error on job id 7: Access/permission denied";
  const auto refused = job().cancel();
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("Access/permission denied"), std::string::npos)
      << refused.error().message;
  EXPECT_LT(time_, seconds(1)) << "the job goes on, so its end is not awaited";
}

TEST_F(SlurmJobTest, ACancelWithoutAControllerIsWorthARetry) {
  slurm_.answers = false;
  EXPECT_EQ(code_of(job().cancel()), Errc::unavailable);
}

// The job ended by itself before scancel came.
TEST_F(SlurmJobTest, ACancelThatComesTooLateTellsTheEnd) {
  slurm_.state = "FAILED";
  slurm_.exit = "3:0";
  slurm_.refusal = "Kill job error on job id 7: Job/step already completing or completed";
  const auto status = job().cancel();
  ASSERT_TRUE(status) << status.error().message;
  EXPECT_EQ(status->state, JobState::failed);
  EXPECT_EQ(status->code, 3);
}

TEST_F(SlurmJobTest, ACancelOfASweepEndsAllItsArrays) {
  place_.more = {"8", "", "9"};
  at(seconds(1), [this] { slurm_.state = "CANCELLED"; });
  // The first array has ended by itself.
  slurm_.refusal = "Kill job error on job id 7: Job/step already completing or completed";
  slurm_.refused = "7";
  ASSERT_TRUE(job().cancel());
  EXPECT_EQ(slurm_.canceled, (std::vector<std::string>{"9", "8", "7"})) << "the last waits for 8";
  EXPECT_EQ(job().facts().numbers, (std::vector<std::string>{"7", "8", "9"}));
}

// If array 8 goes on, array 7 must not be canceled: the end of 7 would start the arrays behind it.
TEST_F(SlurmJobTest, ACancelOfASweepStopsAtTheFirstRefusal) {
  place_.more = {"8", "9"};
  slurm_.refusal = "Kill job error on job id 8: Access/permission denied";
  slurm_.refused = "8";
  const auto refused = job().cancel();
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("Access/permission denied"), std::string::npos);
  EXPECT_EQ(slurm_.canceled, (std::vector<std::string>{"9", "8"}));
}

TEST_F(SlurmJobTest, ACancelOfASweepStopsIfScancelTakesTooLong) {
  place_.more = {"8"};
  SlurmWorld slow = world();
  slow.run = [&](const std::vector<std::string>& argv) -> Result<proc::ToolOutput> {
    if (argv[0] != "scancel") return slurm_.run(argv);
    slurm_.canceled.push_back(argv.back());
    return fail(Errc::timeout, "scancel did not end within 90 s");
  };
  EXPECT_EQ(code_of(SlurmJob(known(), place_, slow).cancel()), Errc::timeout);
  EXPECT_EQ(slurm_.canceled, std::vector<std::string>{"8"});
}

TEST_F(SlurmJobTest, ASecondSignalEndsTheWaitForACanceledJob) {
  patience_ = seconds(5);
  const auto left = job().cancel();
  EXPECT_EQ(code_of(left), Errc::canceled);
  EXPECT_EQ(left.error().sys, SIGINT);
}

TEST_F(SlurmJobTest, AJobThatNobodyKnowsIsLost) {
  EXPECT_EQ(job().status()->state, JobState::running);
  slurm_.knows = false;
  EXPECT_EQ(job().status()->state, JobState::lost);
  slurm_.answers = false;
  EXPECT_EQ(code_of(job().status()), Errc::unavailable);
}

TEST_F(SlurmJobTest, OnlySlurmResumesItsJobs) {
  const auto refused = job().resume({});
  EXPECT_EQ(code_of(refused), Errc::invalid_input);
  EXPECT_NE(refused.error().hint.find("scontrol requeue 7"), std::string::npos);
}

TEST_F(SlurmJobTest, ItsFactsAreTheRunsBeforeThisOne) {
  EXPECT_EQ(job().facts().number, "7");
  EXPECT_EQ(job().facts().output, top_ + "/out");
  EXPECT_FALSE(job().facts().earlier) << "the batch step has not begun";
  slurm::BatchState state;
  state.job = "7";
  state.earlier = {"node", "time"};
  state.jobs = {"5"};  // an older version did not record the numbers of all runs
  keep(state);
  const auto facts = job().facts();
  ASSERT_TRUE(facts.earlier);
  ASSERT_EQ(facts.earlier->size(), 2U);
  EXPECT_EQ(facts.earlier->at(0).number, "5");
  EXPECT_EQ(facts.earlier->at(1).number, "");
  EXPECT_EQ(facts.earlier->at(1).cause, "time");
  EXPECT_FALSE(facts.chain);
}

TEST_F(SlurmJobTest, ARunThatHasEndedCountsWhileTheNextOneWaits) {
  slurm::BatchState state;
  state.stage = slurm::Stage::requeued;
  state.job = "7";
  state.cause = "time";
  state.next = "8";
  state.chain = 0;
  keep(state);
  const auto facts = job().facts();
  ASSERT_EQ(facts.earlier->size(), 1U);
  EXPECT_EQ(facts.earlier->front().number, "7");
  EXPECT_EQ(facts.earlier->front().cause, "time");
  EXPECT_EQ(facts.chain, 0);
}

TEST_F(SlurmJobTest, AJobOfPlainSbatchIsExplainedBySlurmAlone) {
  slurm_.state = "PENDING";
  slurm_.reason = "Priority";
  const SlurmPlace number{.job = "7", .folder = {}, .output = {}};
  const auto said = SlurmJob(known(), number, world()).why();
  ASSERT_TRUE(said) << said.error().message;
  EXPECT_NE(said->text.find("Priority"), std::string::npos) << said->text;
}

TEST_F(SlurmJobTest, WhyAJobWaitsIsSlurmsReason) {
  slurm_.state = "PENDING";
  slurm_.reason = "Priority";
  const auto said = job().why();
  ASSERT_TRUE(said) << said.error().message;
  EXPECT_NE(said->text.find('7'), std::string::npos);
  EXPECT_NE(said->text.find("Priority"), std::string::npos) << said->text;
}

TEST_F(SlurmJobTest, WhyAForgottenJobFailedIsInItsFolder) {
  slurm_.knows = false;
  EXPECT_EQ(code_of(job().why()), Errc::not_found) << "nothing is recorded yet";
  slurm::BatchState end = ended("worker", 3);
  end.words = "rank 3 (n2) exited with 3";
  keep(end);
  const auto said = job().why();
  ASSERT_TRUE(said) << said.error().message;
  EXPECT_NE(said->text.find("rank 3 (n2) exited with 3"), std::string::npos) << said->text;
}

TEST_F(SlurmJobTest, TheHangOfAnEndedJobIsInTheReportsOfItsAgents) {
  slurm_.knows = false;
  keep(ended("node lost", 1));
  report_hang("n1");
  report_hang("n2");
  const auto said = job().why();
  ASSERT_TRUE(said) << said.error().message;
  EXPECT_NE(said->text.find("  hang    hung for 7 s: \\x1b[2J\n"
                            "          evidence on n1: /logs/a/hang-*.txt\n"
                            "          evidence on n2: /logs/a/hang-*.txt\n"),
            std::string::npos)
      << said->text;
}

TEST_F(SlurmJobTest, TheEvidenceOfManyNodesIsCounted) {
  slurm_.knows = false;
  keep(ended("node lost", 1));
  const auto lines_about_evidence = [this] {
    const auto said = job().why();
    EXPECT_TRUE(said) << said.error().message;
    std::string lines;
    for (const std::string& line : split(said->text, '\n'))
      if (line.find("evidence on ") != std::string::npos) lines += std::string(strip(line)) + "\n";
    return lines;
  };
  std::string expected;
  for (int node = 10; node < 26; ++node) {
    report_hang(fmt::format("n{}", node));
    expected += fmt::format("evidence on n{}: /logs/a/hang-*.txt\n", node);
  }
  EXPECT_EQ(lines_about_evidence(), expected);
  report_hang("n26");
  report_hang("n27");
  EXPECT_EQ(lines_about_evidence(), expected + "evidence on 2 more nodes\n");
}

// Slurm counts from 1 again after the loss of its state. Job 7 may be another one today.
TEST_F(SlurmJobTest, WordsOfAnOlderJobWithThisNumberAreNotMixedIn) {
  slurm::BatchState end = ended("worker", 3);
  end.words = "rank 3 (n2) exited with 3";
  keep(end);
  jobs::KnownJob other = known();
  other.name = "older";
  const auto said = SlurmJob(other, place_, world()).why();
  ASSERT_TRUE(said) << said.error().message;
  EXPECT_EQ(said->text.find("exited with 3"), std::string::npos) << said->text;
}

}  // namespace
}  // namespace lockstep::jobs::on_slurm
