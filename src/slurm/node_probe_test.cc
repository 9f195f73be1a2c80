#include "slurm/node_probe.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

namespace lockstep::slurm {
namespace {

TEST(NodeProbe, GpusThatSlurmGave) {
  EXPECT_EQ(gpus_given("2", "0,1,2"), 2);
  EXPECT_EQ(gpus_given(nullptr, "0,3"), 2);
  EXPECT_EQ(gpus_given(nullptr, ""), 0);
  EXPECT_EQ(gpus_given(nullptr, nullptr), 0);
  EXPECT_EQ(gpus_given("x", nullptr), 0);
}

TEST(NodeProbe, ProcessesOnGpusOfTheJobOnly) {
  EXPECT_EQ(gpu_users("GPU-a, 12\nGPU-b, 13\n\nnonsense\n", {"GPU-a"}),
            std::vector<std::string>{"pid 12"});
}

class NodeProbeFolder : public ::testing::Test {
 protected:
  NodeProbeFolder() {
    std::string name = ::testing::TempDir() + "/node-probe-XXXXXX";
    folder_ = mkdtemp(name.data());
  }
  ~NodeProbeFolder() override {
    unsetenv("SLURM_GPUS_ON_NODE");
    std::filesystem::remove_all(folder_);
  }
  void write(const std::string& path, const std::string& text) const {
    std::filesystem::create_directories(std::filesystem::path(folder_ + path).parent_path());
    std::ofstream(folder_ + path) << text;
  }
  NodeFacts probe(bool thorough = false) const {
    return probe_node({.job_folder = folder_, .thorough = thorough, .root = folder_});
  }
  std::string folder_;
};

TEST_F(NodeProbeFolder, FoldersAreWrittenTo) {
  const NodeFacts facts = probe();
  EXPECT_EQ(facts.job.trouble, "");
  EXPECT_GT(facts.job.total_mib, 0);
  EXPECT_TRUE(std::filesystem::is_empty(folder_));
  EXPECT_EQ(probe_node({.job_folder = folder_ + "/nowhere"}).job.trouble,
            "No such file or directory");
}

TEST_F(NodeProbeFolder, DeviceFilesOfGpusAndAFabric) {
  setenv("SLURM_GPUS_ON_NODE", "2", 1);
  EXPECT_EQ(probe().gpus_given, 2);
  EXPECT_EQ(probe().gpus_seen, 0);
  EXPECT_FALSE(probe().fabric);
  write("/dev/nvidia0", "");
  write("/dev/nvidia1", "");
  write("/sys/class/infiniband/mlx5_0", "");
  EXPECT_EQ(probe().gpus_seen, 2);
  EXPECT_TRUE(probe().fabric);
}

}  // namespace
}  // namespace lockstep::slurm
