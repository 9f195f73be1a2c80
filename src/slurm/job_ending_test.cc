#include "slurm/job_ending.h"

#include <gtest/gtest.h>

namespace lockstep::slurm {
namespace {

JobReport ended(const std::string& state, int code = 0, int signal = 0) {
  JobReport job;
  job.id = job.job = "7";
  job.state = parse_job_state(state);
  job.partition = "gpu";
  job.nodes = "n[1-2]";
  job.start = 1000;
  job.end = 1060;
  job.exit_code = code;
  job.signal = signal;
  job.output = "/home/ann/out";
  return job;
}

std::string why(const JobReport& job) {
  return explain(job, {}).why;
}

TEST(JobEnding, ExitCodesAndSignals) {
  EXPECT_EQ(why(ended("COMPLETED")), "the job succeeded after 60 s");
  EXPECT_EQ(why(ended("FAILED", 3)), "the script ended with code 3 after 60 s");
  EXPECT_EQ(why(ended("FAILED", 137)),
            "the script ended with code 137: a program was killed by SIGKILL after 60 s");
  EXPECT_EQ(why(ended("FAILED", 0, 9)), "the script was killed by SIGKILL after 60 s");
  EXPECT_EQ(why(ended("FAILED", 127)), "the script ended with code 127: a command was not found");
  EXPECT_EQ(explain(ended("FAILED", 3), {}).advice.back(), "the job's output: /home/ann/out");
}

TEST(JobEnding, AFolderThatIsNotThere) {
  const Explanation said = explain(ended("FAILED", 0, 53), {});
  EXPECT_TRUE(said.why.starts_with("the folder of the job's output")) << said.why;
  EXPECT_EQ(said.advice.back(), "the job's output should be /home/ann/out");
}

TEST(JobEnding, TheTimeLimitAndWhatThePartitionAllows) {
  JobReport job = ended("TIMEOUT", 0, 15);
  job.time_limit = 60;
  Surroundings around;
  around.partitions.push_back({.name = "gpu", .max_time = 86400});
  const Explanation said = explain(job, around);
  EXPECT_EQ(said.why, "the time limit of 00:01:00 was over");
  EXPECT_NE(said.advice.at(0).find("partition gpu allows 1-00:00:00"), std::string::npos);
}

TEST(JobEnding, WhoCancelledIt) {
  EXPECT_EQ(why(ended("CANCELLED by 1000", 0, 15)), "the job was canceled by user 1000 after 60 s");
  EXPECT_EQ(why(ended("CANCELLED by 0", 0, 15)), "the job was canceled by root after 60 s");
  JobReport job = ended("CANCELLED", 0, 15);
  job.start.reset();
  EXPECT_EQ(why(job), "the job was canceled before its start");
}

TEST(JobEnding, EveryOtherEndHasItsWordsAndAnOutlook) {
  for (const char* state :
       {"OUT_OF_MEMORY", "NODE_FAIL", "PREEMPTED", "DEADLINE", "BOOT_FAIL", "REVOKED"}) {
    const Explanation said = explain(ended(state), {});
    EXPECT_EQ(said.outlook, Outlook::ended) << state;
    EXPECT_NE(said.why, "the job failed") << state;
    EXPECT_NE(said.why, "") << state;
  }
  JobReport impossible = ended("FAILED", 1);
  impossible.reason = "BadConstraints";
  EXPECT_EQ(explain(impossible, {}).why, "no node of the cluster has the requested resources");
  EXPECT_EQ(explain(impossible, {}).outlook, Outlook::ended);
}

TEST(JobEnding, ARunIsToldWithItsTime) {
  JobReport job = ended("RUNNING");
  job.time_limit = 3600;
  job.end = 4600;
  Surroundings around;
  around.now = 1600;
  EXPECT_EQ(explain(job, around).why,
            "the job runs for 10 min on n[1-2]; the time limit ends in 50 min");
  EXPECT_EQ(explain(job, around).outlook, Outlook::runs);
  job.state = parse_job_state("COMPLETING");
  EXPECT_TRUE(explain(job, around).why.starts_with("the job's programs have ended"));
  job.state = parse_job_state("EVAPORATING");
  EXPECT_EQ(explain(job, around).why, "Slurm calls its state EVAPORATING");
  EXPECT_EQ(explain(job, around).outlook, Outlook::unknown);
}

}  // namespace
}  // namespace lockstep::slurm
