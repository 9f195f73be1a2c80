#include "slurm/scontrol_command.h"

#include <gtest/gtest.h>

namespace lockstep::slurm {
namespace {

// As Slurm 22.05 prints it.
constexpr const char* kPending =
    "JobId=2 JobName=wai\tt=ing Reason=None UserId=root(0) GroupId=root(0) MCS_label=N/A "
    "Priority=4294901758 Nice=0 "
    "Account=(null) QOS=(null) JobState=PENDING Reason=Nodes_required_for_job_are_DOWN "
    "Dependency=(null) Requeue=1 "
    "Restarts=0 BatchFlag=1 Reboot=0 ExitCode=0:0 RunTime=00:00:00 TimeLimit=00:10:00 TimeMin=N/A "
    "SubmitTime=1795374458 EligibleTime=1795374458 AccrueTime=1795374458 StartTime=1795374466 "
    "EndTime=1795375066 "
    "Deadline=N/A SuspendTime=None SecsPreSuspend=0 LastSchedEval=1795374461 Scheduler=Backfill:* "
    "Partition=gpu "
    "AllocNode:Sid=localhost:0 ReqNodeList=(null) ExcNodeList=n4 NodeList= SchedNodeList=n[2-3] "
    "NumNodes=2-2 "
    "NumCPUs=2 NumTasks=2 CPUs/Task=1 ReqB:S:C:T=0:0:*:* TRES=cpu=2,mem=200M,node=2,billing=2 "
    "Socks/Node=* "
    "NtasksPerN:B:S:C=0:0:*:* CoreSpec=* MinCPUsNode=1 MinMemoryCPU=100M MinTmpDiskNode=0 "
    "Features=(null) "
    "DelayBoot=00:00:00 OverSubscribe=OK Contiguous=0 Licenses=(null) Network=(null) "
    "Command=(null) "
    "WorkDir=/home/ann/my project Comment=hello JobState=x StdErr=/dev/null StdIn=/dev/null "
    "StdOut=/tmp/a b.out "
    "Power= TresPerNode=gres:gpu:2 \n";

std::string ended(const std::string& state, const std::string& code) {
  return "JobId=10 JobName=wrap UserId=ann(1000) GroupId=ann(1000) MCS_label=N/A Priority=1 "
         "JobState=" +
         state +
         " Reason=NonZeroExitCode Dependency=(null) Requeue=1 Restarts=2 BatchFlag=1 Reboot=0 "
         "ExitCode=" +
         code +
         " TimeLimit=UNLIMITED SubmitTime=1 StartTime=2 EndTime=3 Partition=urgent NodeList=n1 "
         "NumNodes=1\n";
}

TEST(Scontrol, TheFirstNodeIsAPartOfTheOutputsName) {
  std::string line = ended("RUNNING", "0:0");
  line.pop_back();
  line += " StdOut=/w/%N-10.out";
  EXPECT_EQ(parse_scontrol_jobs(line + "\n").at(0).output, "") << "not known yet";
  EXPECT_EQ(parse_scontrol_jobs(line + " BatchHost=n3\n").at(0).output, "/w/n3-10.out");
}

TEST(Scontrol, AJobIsRead) {
  const auto jobs = parse_scontrol_jobs(kPending);
  ASSERT_EQ(jobs.size(), 1U);
  const JobReport& job = jobs[0];
  EXPECT_EQ(job.id, "2");
  EXPECT_EQ(job.name, "wai\tt=ing Reason=None");
  EXPECT_EQ(job.user, "root");
  EXPECT_EQ(job.state.name, "PENDING");
  EXPECT_EQ(job.reason, "Nodes_required_for_job_are_DOWN");
  EXPECT_EQ(job.restarts, 0);
  EXPECT_EQ(job.node_count, 2);
  EXPECT_EQ(job.held_nodes, "n[2-3]");
  EXPECT_EQ(job.excluded_nodes, "n4");
  EXPECT_EQ(job.nodes, "");
  EXPECT_EQ(job.time_limit, 600);
  EXPECT_EQ(job.start, 1795374466);
  EXPECT_EQ(job.priority, 4294901758);
  EXPECT_EQ(job.folder, "/home/ann/my project");
  EXPECT_EQ(job.output, "/tmp/a b.out");
  EXPECT_EQ(job.gpus, "gres:gpu:2");
  EXPECT_EQ(job.exit_code, std::nullopt);
}

TEST(Scontrol, HowItEndedIsRead) {
  const auto failed = parse_scontrol_jobs(ended("FAILED", "3:0")).at(0);
  EXPECT_EQ(failed.exit_code, 3);
  EXPECT_EQ(failed.signal, 0);
  EXPECT_EQ(failed.restarts, 2);
  EXPECT_EQ(failed.user, "ann");
  EXPECT_EQ(failed.time_limit, std::nullopt);
  EXPECT_EQ(parse_scontrol_jobs(ended("TIMEOUT", "0:15")).at(0).signal, 15);
  EXPECT_EQ(parse_scontrol_jobs(ended("CANCELLED", "x:y")).at(0).exit_code, std::nullopt);
}

TEST(Scontrol, PartsOfArraysAndHeterogeneousJobsHaveTheirIds) {
  const std::string rest = " JobName=wrap UserId=root(0) JobState=PENDING\n";
  EXPECT_EQ(parse_scontrol_jobs("JobId=14 ArrayJobId=6 ArrayTaskId=4 ArrayTaskThrottle=2" + rest)
                .at(0)
                .id,
            "6_4");
  EXPECT_EQ(parse_scontrol_jobs("JobId=6 ArrayJobId=6 ArrayTaskId=1-5%2" + rest).at(0).id,
            "6_[1-5%2]");
  const auto het = parse_scontrol_jobs("JobId=8 HetJobId=7 HetJobOffset=1" + rest).at(0);
  EXPECT_EQ(het.id, "7+1");
  EXPECT_EQ(het.job, "7");
  EXPECT_EQ(het.name, "wrap");
  const std::string set =
      " JobName=a HetJobIdSet=b HetJobIdSet=7-8 UserId=root(0) JobState=FAILED\n";
  EXPECT_EQ(parse_scontrol_jobs("JobId=7 HetJobId=7 HetJobOffset=0" + set).at(0).name,
            "a HetJobIdSet=b");
  // Here the text is part of another job's name.
  EXPECT_EQ(parse_scontrol_jobs("JobId=7" + set).at(0).name, "a HetJobIdSet=b HetJobIdSet=7-8");
}

TEST(Scontrol, LinesThatMakeNoSenseAreLeftOut) {
  EXPECT_TRUE(parse_scontrol_jobs("").empty());
  EXPECT_TRUE(parse_scontrol_jobs("No jobs in the system\n").empty());
  EXPECT_TRUE(
      parse_scontrol_jobs("JobId=1\nJobId=1 JobName=\nJobId=x JobName=a UserId=b\n").empty());
}

TEST(Scontrol, WhoStopsAJob) {
  const auto by = [](const std::string& rest) {
    return stopped_by("JobId=14 JobName=wrap Requeue=1 " + rest);
  };
  EXPECT_EQ(by("JobState=RUNNING Reason=None PreemptTime=None"), StoppedBy::nobody);
  EXPECT_EQ(by("JobState=SIGNALING Reason=None"), StoppedBy::nobody);
  EXPECT_EQ(by("JobState=COMPLETING Reason=TimeLimit"), StoppedBy::time_limit);
  EXPECT_EQ(by("JobState=TIMEOUT Reason=TimeLimit"), StoppedBy::time_limit);
  EXPECT_EQ(by("JobState=COMPLETING Reason=None"), StoppedBy::somebody);
  EXPECT_EQ(by("JobState=CANCELLED Reason=None"), StoppedBy::somebody);
  EXPECT_EQ(by("JobState=RUNNING PreemptTime=1700000000"), StoppedBy::preemption);
}

}  // namespace
TEST(Scontrol, KnowsWhatItsVersionsDoWithAPreemptedJob) {
  EXPECT_FALSE(queues_again_what_ends_preempted("slurm-wlm 22.05.8\n"));
  EXPECT_FALSE(queues_again_what_ends_preempted("slurm 23.11.4"));
  EXPECT_TRUE(queues_again_what_ends_preempted("slurm 24.05.0"));
  EXPECT_TRUE(queues_again_what_ends_preempted("slurm-wlm 24.11.5\n"));
  EXPECT_TRUE(queues_again_what_ends_preempted("slurm 26.05.1-1"));
  for (const char* odd : {"", "slurm", "24", "slurm 24.x", "slurm 24.99", "slurm -4.11", "9999.12"})
    EXPECT_FALSE(queues_again_what_ends_preempted(odd)) << odd;
}

}  // namespace lockstep::slurm
