#include "agent/oom.h"

#include "io/fd.h"

#include <gtest/gtest.h>

#include <signal.h>
#include <stdlib.h>

#include <filesystem>

namespace lockstep::agent {
namespace {

class Oom : public testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/lockstep_oom_XXXXXX";
    ASSERT_NE(mkdtemp(name), nullptr);
    root_ = name;
  }
  void TearDown() override { std::filesystem::remove_all(root_); }
  void put(const std::string& path, std::string_view text) const {
    std::filesystem::create_directories(std::filesystem::path(root_ + path).parent_path());
    ASSERT_TRUE(io::write_file(root_ + path, text));
  }
  std::string root_;
};

TEST_F(Oom, ParsesTheCounterAndNotItsNeighbours) {
  EXPECT_EQ(parse_oom_kills("low 0\noom 4\noom_kill 3\noom_group_kill 9\n"), 3U);
  EXPECT_EQ(parse_oom_kills("oom_kill_disable 0\nunder_oom 0\noom_kill 1\n"), 1U);
  EXPECT_EQ(parse_oom_kills("oom 4\noom_kill x\n"), std::nullopt);
}

TEST_F(Oom, CgroupV2) {
  put("/proc/self/cgroup", "0::/job/step\n");
  put("/sys/fs/cgroup/job/step/memory.events", "oom 2\noom_kill 2\n");
  put("/proc/vmstat", "oom_kill 9\n");
  const auto counter = OomCounter::find(root_);
  EXPECT_EQ(counter.read(), 2U);
  EXPECT_FALSE(counter.system_wide());
}

TEST_F(Oom, ContainerSeesItsCgroupAtTheTop) {
  put("/proc/self/cgroup", "0::/kubepods/pod1/abc\n");
  put("/sys/fs/cgroup/memory.events", "oom_kill 5\n");
  EXPECT_EQ(OomCounter::find(root_).read(), 5U);
}

TEST_F(Oom, CgroupV1AndHybrid) {
  put("/proc/self/cgroup", "9:cpu,cpuacct:/x\n5:memory:/job\n1:name=systemd:/y\n0::/z\n");
  put("/sys/fs/cgroup/memory/job/memory.oom_control",
      "oom_kill_disable 0\nunder_oom 0\noom_kill 7\n");
  EXPECT_EQ(OomCounter::find(root_).first(), 7U);
  put("/sys/fs/cgroup/unified/z/memory.events", "oom_kill 8\n");
  EXPECT_EQ(OomCounter::find(root_).read(), 7U);
  put("/proc/self/cgroup", "9:cpu,cpuacct:/x\n1:name=systemd:/y\n0::/z\n");
  EXPECT_EQ(OomCounter::find(root_).first(), 8U);
}

TEST_F(Oom, WithoutCgroupsTheMachineCounts) {
  EXPECT_EQ(OomCounter::find(root_).read(), std::nullopt);
  put("/proc/vmstat", "nr_free_pages 1\noom_kill 4\n");
  const auto counter = OomCounter::find(root_);
  EXPECT_EQ(counter.read(), 4U);
  EXPECT_TRUE(counter.system_wide());
}

TEST_F(Oom, OnlyASigkillWithARisenCounterIsNamed) {
  EXPECT_EQ(oom_note(-SIGKILL, 1, 2, false), "killed by the kernel's out-of-memory killer");
  EXPECT_TRUE(oom_note(-SIGKILL, 1, 2, true)->starts_with("probably"));
  EXPECT_FALSE(oom_note(-SIGKILL, 2, 2, false));
  EXPECT_FALSE(oom_note(-SIGTERM, 1, 2, false));
  EXPECT_FALSE(oom_note(1, 1, 2, false));
  EXPECT_FALSE(oom_note(-SIGKILL, std::nullopt, 2, false));
}

}  // namespace
}  // namespace lockstep::agent
