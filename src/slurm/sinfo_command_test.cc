#include "slurm/sinfo_command.h"

#include <gtest/gtest.h>

namespace lockstep::slurm {
namespace {

TEST(Sinfo, GpusOfNodes) {
  EXPECT_EQ(parse_gpus("gpu:a100:8(S:0-1)"), (std::vector<GpuKind>{{"a100", 8}}));
  EXPECT_EQ(parse_gpus("gpu:4,nvme:1"), (std::vector<GpuKind>{{"", 4}}));
  EXPECT_EQ(parse_gpus("gpu:a100:2(S:0,1),gpu:v100:6"),
            (std::vector<GpuKind>{{"a100", 2}, {"v100", 6}}));
  EXPECT_EQ(parse_gpus("gpu"), (std::vector<GpuKind>{{"", 1}}));
  for (const char* none : {"", "(null)", "nvme:1", "gpu:x", "gpu:a:b:c", "gpu:0"})
    EXPECT_TRUE(parse_gpus(none).empty()) << none;
}

TEST(Sinfo, GroupsOfNodes) {
  const auto groups = parse_sinfo(
      "gpu*|up|infinite|3|idle|8|4000|gpu:fake:8|n[1-2,4]\n"
      "gpu*|up|infinite|1|drained|8|4000|gpu:fake:8|n3\n"
      "short|drain|30:00|2|mixed|8+|4000+|(null)|n[1-2]\nx\n");
  ASSERT_EQ(groups.size(), 3U);
  EXPECT_EQ(groups[0].partition, "gpu");
  EXPECT_TRUE(groups[0].is_default);
  EXPECT_TRUE(groups[0].up);
  EXPECT_EQ(groups[0].count, 3);
  EXPECT_EQ(groups[0].cpus, 8);
  EXPECT_EQ(groups[0].memory_mb, 4000);
  EXPECT_EQ(groups[0].gpus.size(), 1U);
  EXPECT_EQ(groups[0].nodes, "n[1-2,4]");
  EXPECT_EQ(groups[0].time_limit, std::nullopt);
  EXPECT_FALSE(groups[2].up);
  EXPECT_FALSE(groups[2].is_default);
  EXPECT_EQ(groups[2].time_limit, 1800);
  EXPECT_EQ(groups[2].cpus, 8);
}

TEST(Sinfo, NodesThatAreOutOfService) {
  const auto out = parse_sinfo_reasons(
      "drained|1795374998|n3|Prolog error\ndown*|Unknown|n[4-5]|Not responding | x\n");
  ASSERT_EQ(out.size(), 2U);
  EXPECT_EQ(out[0].nodes, "n3");
  EXPECT_EQ(out[0].since, 1795374998);
  EXPECT_EQ(out[0].reason, "Prolog error");
  EXPECT_EQ(out[1].reason, "Not responding | x");
}

TEST(Sinfo, WhichStatesAreInService) {
  for (const char* state :
       {"idle", "mixed", "allocated", "completing", "planned", "idle~", "mixed#", "reserved"})
    EXPECT_TRUE(is_in_service(state)) << state;
  for (const char* state :
       {"down", "down*", "drained", "draining", "idle*", "fail", "maint", "unknown", "DRAINED@"})
    EXPECT_FALSE(is_in_service(state)) << state;
}

}  // namespace
}  // namespace lockstep::slurm
