#include "slurm/ask_jobs.h"

#include "base/error_testing.h"
#include "base/text.h"

#include <gtest/gtest.h>

#include <map>

namespace lockstep::slurm {
namespace {

// Fakes of Slurm's programs with fixed answers; records the calls.
struct FakeSlurm {
  std::map<std::string, proc::ToolOutput> says;
  std::vector<std::string> asked;

  RunTool run() {
    return [this](const std::vector<std::string>& argv) -> Result<proc::ToolOutput> {
      asked.push_back(argv[0]);
      const auto found = says.find(argv[0]);
      if (found == says.end()) return fail(Errc::not_found, argv[0] + " is not in PATH");
      return found->second;
    };
  }
};

proc::ToolOutput says(const std::string& text) {
  return {.out = text, .err = "", .exit = {}};
}
proc::ToolOutput fails(const std::string& text) {
  return {.out = "", .err = text, .exit = {.code = 1}};
}

const proc::ToolOutput kUnknownJob = fails("slurm_load_jobs error: Invalid job id specified\n");
const proc::ToolOutput kNoAccounting = fails("Slurm accounting storage is disabled\n");

std::string queue_line(const std::string& id, const std::string& state,
                       const std::string& name = "train",
                       const std::string& submitted = "1000000") {
  return id + "|" + std::string(whole_job(id)) + "|" + state + "|ann|gpu|" + submitted +
         "|N/A|N/A|10:00|2||1|(null)|(null)|(null)|(null)|None|" + name + "\n";
}

std::string shown(const std::string& state, const std::string& code) {
  return "JobId=7 JobName=train UserId=ann(1000) JobState=" + state +
         " Restarts=1 ExitCode=" + code + " SubmitTime=1000000 NodeList=n1\n";
}

TEST(AskJobs, OneQuestionDoesForJobsThatWaitOrRun) {
  FakeSlurm slurm{{{"squeue", says(queue_line("7", "RUNNING") + queue_line("8", "PENDING"))}}, {}};
  const auto jobs = ask_jobs({{"7"}, {"8"}}, Detail::usual, slurm.run());
  ASSERT_TRUE(jobs) << jobs.error().message;
  ASSERT_EQ(jobs->size(), 2U);
  EXPECT_EQ((*jobs)[1].state.name, "PENDING");
  EXPECT_EQ(slurm.asked, std::vector<std::string>{"squeue"});
}

TEST(AskJobs, HowAJobEndedIsAskedOfScontrol) {
  FakeSlurm slurm{
      {{"squeue", says(queue_line("7", "FAILED"))}, {"scontrol", says(shown("FAILED", "3:0"))}},
      {}};
  const auto jobs = ask_jobs({{"7"}}, Detail::usual, slurm.run());
  ASSERT_TRUE(jobs && jobs->size() == 1);
  EXPECT_EQ((*jobs)[0].exit_code, 3);
  EXPECT_EQ((*jobs)[0].restarts, 1);
}

TEST(AskJobs, AccountingIsAskedForWhatTheControllerForgot) {
  FakeSlurm slurm{
      {{"squeue", kUnknownJob},
       {"scontrol", kUnknownJob},
       {"sacct",
        says("7|CANCELLED by 1000|0:15|ann|gpu|lab|normal|1000000|1000000|1000001|1000002|00:10:00|"
             "1|n1|None|train\n")}},
      {}};
  const auto jobs = ask_jobs({{"7", "train", "ann", 1000000}}, Detail::usual, slurm.run());
  ASSERT_TRUE(jobs && jobs->size() == 1);
  EXPECT_EQ((*jobs)[0].state.cancelled_by, "1000");
  EXPECT_EQ((*jobs)[0].signal, 15);
  EXPECT_EQ((*jobs)[0].name, "train");
}

TEST(AskJobs, WhoCancelledAJobComesFromAccountingWhereItIs) {
  FakeSlurm slurm{
      {{"squeue", says(queue_line("7", "CANCELLED"))},
       {"scontrol", says(shown("CANCELLED", "0:15"))},
       {"sacct", says("7|CANCELLED by 1000|0:0|ann|gpu|||1000000|||||1|n1|None|train\n")}},
      {}};
  const auto jobs = ask_jobs({{"7"}}, Detail::all, slurm.run());
  ASSERT_TRUE(jobs && jobs->size() == 1);
  EXPECT_EQ((*jobs)[0].state.cancelled_by, "1000");
  EXPECT_EQ((*jobs)[0].restarts, 1);
}

TEST(AskJobs, NoAccountingIsNoError) {
  for (const bool installed : {true, false}) {
    FakeSlurm slurm{{{"squeue", kUnknownJob}, {"scontrol", kUnknownJob}}, {}};
    if (installed) slurm.says["sacct"] = kNoAccounting;
    const auto jobs = ask_jobs({{"7"}}, Detail::usual, slurm.run());
    ASSERT_TRUE(jobs) << jobs.error().message;
    EXPECT_TRUE(jobs->empty());
  }
}

TEST(AskJobs, AControllerThatIsDownIsAnErrorOfItsOwn) {
  FakeSlurm slurm{
      {{"squeue",
        fails("slurm_load_jobs error: Unable to contact slurm controller (connect failure)\n")}},
      {}};
  const auto jobs = ask_jobs({{"7"}}, Detail::usual, slurm.run());
  ASSERT_FALSE(jobs);
  EXPECT_EQ(code_of(jobs), Errc::unavailable);
}

TEST(AskJobs, AnIdThatWasGivenAgainIsAnotherJob) {
  FakeSlurm slurm{{{"squeue", says(queue_line("7", "RUNNING"))},
                   {"scontrol", kUnknownJob},
                   {"sacct", kNoAccounting}},
                  {}};
  const auto known = [&](const JobAsked& job) {
    return ask_jobs({job}, Detail::usual, slurm.run())->size();
  };
  EXPECT_EQ(known({"7", "train", "ann", 1000000}), 1U);
  EXPECT_EQ(known({"7", "other", "ann", 1000000}), 0U);
  EXPECT_EQ(known({"7", "train", "bob", 1000000}), 0U);
  EXPECT_EQ(known({"7", "train", "ann", 1000100}), 1U);  // clocks differ
  EXPECT_EQ(known({"7", "train", "ann", 1001000}), 0U);
}

TEST(AskJobs, ARecordOfAnEarlierJobInAccountingIsNotThisOne) {
  FakeSlurm slurm{{{"squeue", kUnknownJob},
                   {"scontrol", kUnknownJob},
                   {"sacct", says("7|FAILED|1:0|ann|gpu|||500000|||||1|n1|None|train\n")}},
                  {}};
  EXPECT_TRUE(ask_jobs({{"7", "train", "ann", 1000000}}, Detail::usual, slurm.run())->empty());
}

TEST(AskJobs, AnArrayIsOneReportForEachPart) {
  FakeSlurm slurm{
      {{"squeue", says(queue_line("6_1", "RUNNING") + queue_line("6_[2-5%2]", "PENDING"))}}, {}};
  EXPECT_EQ(ask_jobs({{"6"}}, Detail::usual, slurm.run())->size(), 2U);
  EXPECT_EQ(ask_jobs({{"6_1"}}, Detail::usual, slurm.run())->size(), 1U);
  const auto waiting = ask_jobs({{"6_3"}}, Detail::usual, slurm.run());
  ASSERT_EQ(waiting->size(), 1U);
  EXPECT_EQ(waiting->front().id, "6_[2-5%2]");
}

TEST(AskJobs, OnlyAnIdBecomesAWordOfSlurmsPrograms) {
  FakeSlurm slurm;
  for (const char* id : {"", "-h", "7,8", "7_", "x", "7 8", "12345678901", "1_2_3"})
    EXPECT_FALSE(ask_jobs({{id}}, Detail::usual, slurm.run())) << id;
  EXPECT_TRUE(slurm.asked.empty());
}

}  // namespace
}  // namespace lockstep::slurm
