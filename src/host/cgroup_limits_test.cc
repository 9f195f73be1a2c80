#include "host/cgroup_limits.h"

#include "host/fake_tree_testing.h"

namespace lockstep::host {
namespace {

using CgroupLimitsOf = FakeTree;

TEST_F(CgroupLimitsOf, NothingWhereThereAreNone) {
  EXPECT_FALSE(cgroup_limits(root_).memory);
  put("/proc/self/cgroup", "0::/user.slice\n");
  put("/sys/fs/cgroup/user.slice/memory.max", "max\n");
  put("/sys/fs/cgroup/user.slice/cpu.max", "max 100000\n");
  const CgroupLimits limits = cgroup_limits(root_);
  EXPECT_FALSE(limits.memory);
  EXPECT_FALSE(limits.cpus);
}

TEST_F(CgroupLimitsOf, TheSmallestOnTheWayUpCounts) {
  put("/proc/self/cgroup", "0::/a/b\n");
  put("/sys/fs/cgroup/memory.max", "9000000000\n");
  put("/sys/fs/cgroup/a/memory.max", "1000000000\n");
  put("/sys/fs/cgroup/a/b/memory.max", "2000000000\n");
  put("/sys/fs/cgroup/a/b/cpu.max", "150000 100000\n");
  put("/sys/fs/cgroup/cpu.max", "400000 100000\n");
  const CgroupLimits limits = cgroup_limits(root_);
  EXPECT_EQ(limits.memory, 1'000'000'000);
  EXPECT_EQ(limits.cpus, 1.5);
}

TEST_F(CgroupLimitsOf, Version1HasAFolderForEachController) {
  put("/proc/self/cgroup", "9:memory:/docker/1\n4:cpu,cpuacct:/docker/1\n1:name=systemd:/x\n");
  put("/sys/fs/cgroup/memory/docker/1/memory.limit_in_bytes", "500000000\n");
  put("/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
  put("/sys/fs/cgroup/cpu/docker/1/cpu.cfs_quota_us", "50000\n");
  put("/sys/fs/cgroup/cpu/docker/1/cpu.cfs_period_us", "100000\n");
  put("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1\n");
  put("/sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n");
  const CgroupLimits limits = cgroup_limits(root_);
  EXPECT_EQ(limits.memory, 500'000'000);
  EXPECT_EQ(limits.cpus, 0.5);
}

}  // namespace
}  // namespace lockstep::host
