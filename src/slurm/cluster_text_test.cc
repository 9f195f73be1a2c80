#include "slurm/cluster_text.h"

#include "base/error_testing.h"

#include <gtest/gtest.h>

#include <stdlib.h>
#include <time.h>

#include <map>

namespace lockstep::slurm {
namespace {

ClusterFacts facts_of(const std::string& groups) {
  setenv("TZ", "UTC", 1);
  tzset();
  ClusterFacts facts;
  facts.config = parse_config(
      "Configuration data as of 2026-11-22T19:06:34\nAccountingStorageType   = "
      "accounting_storage/none\n"
      "ClusterName             = testbed\nSLURM_VERSION           = 22.05.8\n"
      "SlurmctldHost[0]        = login(10.77.0.254)\nPriorityParameters = (null)\nno line\n = x\n");
  facts.groups = parse_sinfo(groups);
  return facts;
}

constexpr const char* kGroups =
    "gpu*|up|infinite|3|idle|8|4000|gpu:a100:8|n[1-2,4]\n"
    "gpu*|up|infinite|1|drained|8|4000|gpu:a100:8|n3\n"
    "cpu|up|1-00:00:00|2|mixed|64|515000|(null)|c[1-2]\n"
    "cpu|up|1-00:00:00|1|idle|128|515000|(null)|c3\n";

std::vector<std::string> words_of(const ClusterProbe& probe) {
  std::vector<std::string> words;
  for (const ClusterFinding& each : findings_of(probe))
    words.push_back((each.stops_jobs ? "!" : "") + std::string(each.what));
  return words;
}

TEST(ClusterText, PartitionsAsATable) {
  ClusterFacts facts = facts_of(kGroups);
  facts.out = {{"n3", "drained", 1795374998, "Prolog error"}};
  EXPECT_EQ(cluster_text(facts),
            "PARTITION  NODES  GPUS    CPUS       MEMORY   TIME        STATE\n"
            "gpu*       4      8 a100  8          4000 MB  no limit    up: 3 idle, 1 drained\n"
            "cpu        3      -       64 to 128  502 GB   1-00:00:00  up: 2 mixed, 1 idle\n"
            "out of service: n3 (drained since 2026-11-22 19:16:38): Prolog error\n");
  EXPECT_EQ(cluster_line(facts), "Slurm 22.05.8, 2 partitions");
}

TEST(ClusterText, ForPrograms) {
  const auto json = cluster_json(facts_of(kGroups));
  EXPECT_EQ(json["version"], "22.05.8");
  EXPECT_EQ(json["cluster"], "testbed");
  EXPECT_EQ(json["accounting"], false);
  EXPECT_EQ(json["partitions"][0]["gpus"][0]["count"], 8);
  EXPECT_EQ(json["partitions"][0]["nodes"], 4);
  EXPECT_EQ(json["partitions"][0]["in_service"], 3);
  EXPECT_EQ(json["partitions"][1]["max_seconds"], 86400);
  EXPECT_TRUE(json["partitions"][0]["max_seconds"].is_null());
}

TEST(ClusterText, AnEmptyPartitionIsShownToo) {
  const auto all = summarize(facts_of("old|inact|infinite|0|n/a|0|0|(null)|\n"));
  ASSERT_EQ(all.size(), 1U);
  EXPECT_EQ(all[0].nodes, 0);
  EXPECT_EQ(all[0].state, "INACT");
}

TEST(ClusterFindings, NothingStandsInTheWay) {
  ClusterProbe probe;
  probe.facts = facts_of(kGroups);
  EXPECT_EQ(words_of(probe), std::vector<std::string>{"no-accounting"});
}

TEST(ClusterFindings, WhatWouldStopAJob) {
  ClusterProbe probe;
  probe.error = "its settings: Slurm does not answer: connect failure";
  probe.ping = "Slurmctld(primary) at login is DOWN";
  EXPECT_EQ(words_of(probe), std::vector<std::string>{"!no-answer"});
  EXPECT_NE(findings_of(probe)[0].text.find("at login is DOWN"), std::string::npos);

  probe.facts = facts_of("gpu|up|infinite|2|down*|8|4000|(null)|n[1-2]\n");
  EXPECT_EQ(words_of(probe), (std::vector<std::string>{"!no-partition", "no-accounting"}));
  probe.facts = facts_of(std::string(kGroups) + "old|drain|infinite|1|idle|8|4000|(null)|o1\n");
  probe.facts->config["AccountingStorageType"] = "accounting_storage/slurmdbd";
  probe.facts->config["SLURM_VERSION"] = "20.11.9";
  probe.facts->out = {{"n3", "drained", {}, "Prolog error"}};
  probe.has_srun = false;
  probe.refusal = "Invalid account";
  probe.sacct_error = "Connection refused";
  EXPECT_EQ(words_of(probe),
            (std::vector<std::string>{"!no-commands", "partition-down", "!refused", "old-slurm",
                                      "accounting-away", "out-of-service"}));
}

TEST(AskCluster, EveryAnswerIsNeeded) {
  std::map<std::string, int> asked;
  const RunTool run = [&](const std::vector<std::string>& argv) -> Result<proc::ToolOutput> {
    ++asked[argv[0]];
    if (argv[0] == "sinfo")
      return proc::ToolOutput{
          .out = "",
          .err = "slurm_load_partitions: Unable to contact slurm controller (connect failure)\n",
          .exit = {.code = 1}};
    return proc::ToolOutput{.out = "SLURM_VERSION = 24.11.5\n", .err = "", .exit = {}};
  };
  const auto facts = ask_cluster(run);
  ASSERT_FALSE(facts);
  EXPECT_EQ(code_of(facts), Errc::unavailable);
  EXPECT_EQ(ask_surroundings(run, 1).out.size(), 0U);  // an explanation does without
}

}  // namespace
}  // namespace lockstep::slurm
