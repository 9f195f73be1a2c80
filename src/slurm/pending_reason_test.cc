#include "slurm/pending_reason.h"

#include <gtest/gtest.h>

#include <stdlib.h>
#include <time.h>

namespace lockstep::slurm {
namespace {

JobReport job_for(const std::string& reason) {
  JobReport job;
  job.id = job.job = "7";
  job.state = parse_job_state("PENDING");
  job.reason = reason;
  job.partition = "gpu";
  job.node_count = 9;
  job.time_limit = 72000;
  job.submitted = 1000000;
  return job;
}

Explanation said(const std::string& reason, const Surroundings& around = {}) {
  return explain_pending(job_for(reason), around);
}

TEST(PendingReason, EveryReasonThatASiteMeetsIsInWords) {
  for (const char* reason : {"Resources",
                             "Priority",
                             "Dependency",
                             "DependencyNeverSatisfied",
                             "BeginTime",
                             "JobHeldUser",
                             "JobHeldAdmin",
                             "ReqNodeNotAvail",
                             "ReqNodeNotAvail, UnavailableNodes:n2",
                             "ReqNodeNotAvail, Reserved for maintenance",
                             "QOSMaxGRESPerUser",
                             "QOSMaxNodePerJobLimit",
                             "QOSGrpCpuLimit",
                             "AssocGrpCpuLimit",
                             "AssocGrpGRESRunMinutes",
                             "AssocMaxWallDurationPerJobLimit",
                             "PartitionTimeLimit",
                             "PartitionNodeLimit",
                             "BadConstraints",
                             "launch_failed_requeued_held",
                             "launch failed requeued held",
                             "Reservation",
                             "Licenses",
                             "JobArrayTaskLimit",
                             "JobHoldMaxRequeue",
                             "MaxRequeue",
                             "PartitionDown",
                             "PartitionInactive",
                             "InvalidQOS",
                             "InvalidAccount",
                             "MaxGRESPerAccount",
                             "QOSMinGRES",
                             "Nodes required for job are DOWN, DRAINED or reserved",
                             "Nodes_required_for_job_are_DOWN,_DRAINED_or_reserved",
                             "None",
                             "",
                             "Prolog",
                             "Cleaning",
                             "job requeued in held state",
                             "QOSUsageThreshold",
                             "AssociationJobLimit",
                             "QOSResourceLimit",
                             "AssociationTimeLimit",
                             "QOSMaxJobsPerUserLimit",
                             "QOSMaxSubmitJobPerUserLimit",
                             "FrontEndDown",
                             "NodeDown",
                             "SystemFailure",
                             "BurstBufferStageIn",
                             "PartitionConfig",
                             "AccountingPolicy",
                             "MaxMemPerLimit"}) {
    const Explanation explained = said(reason);
    EXPECT_FALSE(explained.why.starts_with("Slurm says")) << reason;
    EXPECT_EQ(explained.why.find('{'), std::string::npos) << explained.why;
    for (const std::string& advice : explained.advice)
      EXPECT_EQ(advice.find('{'), std::string::npos) << advice;
  }
}

TEST(PendingReason, WhetherItStartsByItself) {
  EXPECT_EQ(said("Resources").outlook, Outlook::starts_by_itself);
  EXPECT_EQ(said("JobHeldUser").outlook, Outlook::held);
  EXPECT_EQ(said("JobHeldAdmin").outlook, Outlook::needs_site);
  EXPECT_EQ(said("DependencyNeverSatisfied").outlook, Outlook::never);
  EXPECT_EQ(said("QOSMaxGRESPerUser").outlook, Outlook::starts_by_itself);
  EXPECT_EQ(said("QOSMaxGRESPerJob").outlook, Outlook::never);
  EXPECT_EQ(said("PartitionDown").outlook, Outlook::needs_site);
}

TEST(PendingReason, ThePartitionsNumbersAreNamed) {
  Surroundings around;
  around.partitions.push_back({.name = "gpu", .max_time = 43200, .total_nodes = 4});
  EXPECT_EQ(said("PartitionTimeLimit", around).why,
            "the job asks for 20:00:00, longer than partition gpu allows (12:00:00 at most)");
  EXPECT_EQ(said("PartitionNodeLimit", around).why,
            "the job asks for 9 nodes, more than partition gpu has or allows (it has 4 nodes)");
  around.partitions[0].max_nodes = 2;
  EXPECT_EQ(said("PartitionNodeLimit", around).why,
            "the job asks for 9 nodes, more than partition gpu has or allows (2 nodes at most for "
            "a job)");
}

TEST(PendingReason, ANodeWhoseCheckFailedIsNamedAndLeftOut) {
  Surroundings around;
  around.out = {{"n3", "drained", 999990, "Prolog error"},
                {"n5", "drained", 5000, "Prolog error"},
                {"n2", "drained", 999990, "bad gpu"}};
  const Explanation explained = said("launch_failed_requeued_held", around);
  EXPECT_EQ(explained.outlook, Outlook::held);
  EXPECT_TRUE(explained.why.ends_with("Slurm holds the job now: n3 (drained): Prolog error"))
      << explained.why;
  ASSERT_EQ(explained.advice.size(), 2U);
  EXPECT_EQ(explained.advice[0],
            "scontrol update JobId=7 ExcNodeList=n3 and scontrol release 7 start it on other nodes "
            "(or send it again "
            "with -x n3)");
  EXPECT_EQ(said("launch failed requeued held").advice.size(), 1U);
}

TEST(PendingReason, NodesThatAreOutOfServiceAreShownWhereTheyMatter) {
  Surroundings around;
  around.out = {{"n2", "drained", 1, "bad gpu"}};
  EXPECT_EQ(said("Nodes required for job are DOWN, DRAINED", around).advice.back(),
            "out of service: n2 (drained): bad gpu");
  EXPECT_EQ(said("ReqNodeNotAvail, UnavailableNodes:n[2-3]", around).why,
            "a required node is not available: n[2-3]");
  EXPECT_EQ(said("Priority", around).advice.size(), 1U);
}

TEST(PendingReason, ARequeuedJobWaitsForSlurm) {
  setenv("TZ", "UTC", 1);
  tzset();
  JobReport job = job_for("BeginTime");
  job.eligible = 1795374458;
  EXPECT_EQ(explain_pending(job, {}).why, "the job may not start before 2026-11-22 19:07:38");
  job.restarts = 1;
  EXPECT_NE(explain_pending(job, {}).why.find("Slurm waits after a requeue"), std::string::npos);
}

TEST(PendingReason, LimitsAreReadFromTheirNames) {
  EXPECT_EQ(limit_words("QOSMaxGRESPerUser"),
            "the QOS allows each user only so many GPUs (or other GRES)");
  EXPECT_EQ(limit_words("AssocGrpCPURunMinutesLimit"),
            "the account allows all its jobs together only so many CPUs, times the minutes that "
            "running jobs may still use");
  EXPECT_EQ(limit_words("QOSMaxWallDurationPerJobLimit"),
            "the QOS allows each job only so much time");
  EXPECT_EQ(limit_words("MaxMemoryPerAccount"), "the QOS allows each account only so much memory");
  EXPECT_EQ(limit_words("QOSMinCpuNotSatisfied"), "the QOS wants jobs to ask for more CPUs");
  EXPECT_EQ(limit_words("AssocMaxJobsLimit"),
            "the account allows each user only so many jobs at once");
  for (const char* other :
       {"", "Resources", "QOS", "QOSNotAllowed", "MaxSomething", "Assoc", "QOSGrpGRESx"})
    EXPECT_EQ(limit_words(other), "") << other;
}

TEST(PendingReason, AJobOfPriorityZeroIsHeldWhateverItsReasonSays) {
  for (const char* reason : {"SolarEclipse", "None", "Resources"}) {
    JobReport job = job_for(reason);
    job.priority = 0;
    const Explanation explained = explain_pending(job, {});
    EXPECT_EQ(explained.outlook, Outlook::held) << reason;
    EXPECT_EQ(explained.advice.back(), "scontrol release 7") << reason;
    job.priority = 1;
    EXPECT_NE(explain_pending(job, {}).outlook, Outlook::held) << reason;
    job.state = parse_job_state("SPECIAL_EXIT");
    EXPECT_EQ(explain_pending(job, {}).outlook, Outlook::held) << reason;
  }
}

TEST(PendingReason, AnExpeditedRequeueMayEndInAHold) {
  JobReport job = job_for("None");
  job.state = parse_job_state("EXPEDITING");
  EXPECT_EQ(explain_pending(job, {}).outlook, Outlook::unknown);
  job.priority = 0;
  EXPECT_EQ(explain_pending(job, {}).outlook, Outlook::held);
}

TEST(PendingReason, OfAnArraysTasksTheReasonThatHoldsThemIsTold) {
  EXPECT_EQ(said("Resources,JobHeldUser").why, said("JobHeldUser").why);
  EXPECT_EQ(said("JobArrayTaskLimit,Priority").why, said("JobArrayTaskLimit").why);
  EXPECT_EQ(said("Resources,SolarEclipse").outlook, Outlook::unknown);
  EXPECT_EQ(said("Resources,SolarEclipse").why, "Slurm says Resources,SolarEclipse");
}

TEST(PendingReason, AReasonOfALaterReleaseIsGivenBack) {
  const Explanation explained = said("SolarEclipse");
  EXPECT_EQ(explained.why, "Slurm says SolarEclipse");
  EXPECT_EQ(explained.outlook, Outlook::unknown);
  EXPECT_EQ(outlook_word(explained.outlook), "unknown");
  EXPECT_EQ(said("\x1b[31mred").why, "Slurm says \\x1b[31mred");
}

}  // namespace
}  // namespace lockstep::slurm
