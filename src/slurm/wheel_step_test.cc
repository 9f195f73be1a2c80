#include "slurm/wheel_step.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace lockstep::slurm {
namespace {

NodeGroup group(const std::string& partition, bool is_default, int count, int cpus,
                const std::vector<GpuKind>& gpus, const std::string& state = "idle") {
  NodeGroup made;
  made.partition = partition;
  made.is_default = is_default;
  made.count = count;
  made.cpus = cpus;
  made.gpus = gpus;
  made.state = state;
  made.up = true;
  return made;
}

const std::vector<NodeGroup> kGroups = {
    group("cpu", true, 10, 64, {}), group("gpu", false, 4, 96, {{"a100", 8}}),
    group("gpu", false, 2, 48, {{"nvidia_h100_80gb_hbm3", 4}}, "mixed"),
    group("gpu", false, 9, 8, {{"v100", 4}}, "drained"), group("odd", false, 1, 4, {{"mi250", 1}})};

std::vector<Setting> settings(const std::vector<std::string>& words) {
  return read_settings(words).value().settings;
}

bool has(const std::vector<std::string>& argv, const std::string& word) {
  return std::find(argv.begin(), argv.end(), word) != argv.end();
}

TEST(WheelStep, GpusOfThePartitionThatAreInService) {
  const WheelNodes gpu = wheel_nodes(settings({"-p", "gpu"}), kGroups);
  EXPECT_EQ(gpu.nodes, 6);
  EXPECT_EQ(gpu.cpus, 48);
  EXPECT_EQ(gpu.arch, "8.0;9.0");
  const WheelNodes usual = wheel_nodes({}, kGroups);
  EXPECT_EQ(usual.partition, "cpu");
  EXPECT_EQ(usual.arch, "");
  const WheelNodes odd = wheel_nodes(settings({"--partition=odd"}), kGroups);
  EXPECT_EQ(odd.arch, "");
  EXPECT_EQ(odd.unknown, std::vector<std::string>{"mi250"});
  EXPECT_EQ(wheel_nodes(settings({"-p", "none"}), kGroups).nodes, 0);
}

TEST(WheelStep, AsManyAreAskedAsMayBeFree) {
  const WheelNodes gpu = wheel_nodes(settings({"-p", "gpu"}), kGroups);
  EXPECT_EQ(ask_counts(gpu), (std::vector<int>{6, 4, 1}));
  EXPECT_EQ(ask_counts(wheel_nodes({}, kGroups)), (std::vector<int>{10, 1}));
  EXPECT_EQ(wheel_nodes({}, {group("cpu", true, 3, 4, {}, "idle~")}).idle, 0);
}

// The question keeps options about where to run and drops options about how much.
TEST(WheelStep, AskingIsSmall) {
  const auto given =
      settings({"-p", "gpu", "--gpus=8", "-c", "32", "-A", "lab", "--mem=100G", "-w", "n1"});
  const auto ask = ask_step(given, 6, {"/x/lockstep", "/tmp/ls"});
  EXPECT_TRUE(has(ask, "--nodes=6") && has(ask, "--ntasks=6"));
  EXPECT_TRUE(has(ask, "--partition=gpu") && has(ask, "--account=lab"));
  EXPECT_FALSE(has(ask, "--nodelist=n1") || has(ask, "--gpus=8") || has(ask, "--mem=100G") ||
               has(ask, "--cpus-per-task=32"));
  EXPECT_TRUE(has(ask, "--compress"));
  EXPECT_TRUE(std::none_of(ask.begin(), ask.end(), [](const std::string& word) {
    return word.find("/tmp/ls") != std::string::npos;
  }));
  EXPECT_EQ(ask.end()[-2], "/x/lockstep");
}

TEST(WheelStep, BuildingTakesAllOptions) {
  const auto given = settings({"-p", "gpu", "--gpus=1"});
  const auto build =
      build_step(given, wheel_nodes(given, kGroups), {"/x/lockstep", ""}, {"wheel", "."});
  EXPECT_TRUE(has(build, "--cpus-per-task=16") && has(build, "--gpus=1"));
  EXPECT_EQ(build.end()[-3], "/x/lockstep");
  const auto own = settings({"-c", "4"});
  EXPECT_TRUE(has(build_step(own, {}, {"/x", ""}, {"wheel"}), "--cpus-per-task=4"));
}

}  // namespace
}  // namespace lockstep::slurm
