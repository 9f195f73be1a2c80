#include "slurm/partitions.h"

#include <gtest/gtest.h>

namespace lockstep::slurm {
namespace {

// As Slurm 22.05 prints it.
constexpr const char* kShown =
    "PartitionName=gpu AllowGroups=ALL AllowAccounts=lab,other AllowQos=ALL AllocNodes=ALL "
    "Default=YES QoS=N/A "
    "DefaultTime=NONE DisableRootJobs=NO ExclusiveUser=NO GraceTime=3 Hidden=NO MaxNodes=UNLIMITED "
    "MaxTime=1-00:00:00 "
    "MinNodes=0 LLN=NO MaxCPUsPerNode=UNLIMITED Nodes=n[1-4] PriorityJobFactor=1 PriorityTier=1 "
    "RootOnly=NO "
    "ReqResv=NO OverSubscribe=NO OverTimeLimit=NONE PreemptMode=REQUEUE State=UP TotalCPUs=32 "
    "TotalNodes=4 "
    "SelectTypeParameters=NONE JobDefaults=(null) DefMemPerNode=UNLIMITED MaxMemPerNode=UNLIMITED "
    "TRES=cpu=32,mem=16000M,node=4,billing=32\n"
    "PartitionName=two Default=NO MaxNodes=2 MaxTime=UNLIMITED State=DOWN\nNo such thing\n";

TEST(Partitions, WhatTheyLetJobsHave) {
  const auto all = parse_partitions(kShown);
  ASSERT_EQ(all.size(), 2U);
  EXPECT_EQ(all[0].name, "gpu");
  EXPECT_TRUE(all[0].is_default);
  EXPECT_EQ(all[0].max_time, 86400);
  EXPECT_EQ(all[0].default_time, std::nullopt);
  EXPECT_EQ(all[0].max_nodes, std::nullopt);
  EXPECT_EQ(all[0].total_nodes, 4);
  EXPECT_EQ(all[0].nodes, "n[1-4]");
  EXPECT_EQ(all[0].accounts, "lab,other");
  EXPECT_EQ(all[0].groups, "");
  EXPECT_EQ(all[0].state, "UP");
  EXPECT_EQ(all[1].max_nodes, 2);
  EXPECT_EQ(all[1].max_time, std::nullopt);
  EXPECT_EQ(all[1].state, "DOWN");
}

}  // namespace
}  // namespace lockstep::slurm
