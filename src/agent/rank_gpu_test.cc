#include "agent/rank_gpu.h"

#include <gtest/gtest.h>

namespace lockstep::agent {
namespace {

std::vector<host::Gpu> four_gpus(host::GpuVendor vendor = host::GpuVendor::nvidia) {
  std::vector<host::Gpu> gpus(4);
  for (int i = 0; i < 4; ++i) {
    auto& gpu = gpus[static_cast<std::size_t>(i)];
    gpu.vendor = vendor;
    gpu.index = i;
    gpu.uuid = "GPU-0" + std::to_string(i);
  }
  return gpus;
}

// -1: none.
int index_for(const Environment& env, host::GpuVendor vendor = host::GpuVendor::nvidia) {
  const auto gpu = gpu_of_rank(env, four_gpus(vendor));
  return gpu ? gpu->index : -1;
}

TEST(GpuOfARank, IsThatOfItsLocalRank) {
  EXPECT_EQ(index_for({{"LOCAL_RANK", "2"}}), 2);
  EXPECT_EQ(index_for({{"LOCAL_RANK", "4"}}), -1) << "more ranks than GPUs";
  EXPECT_EQ(index_for({}), -1);
  EXPECT_EQ(index_for({{"LOCAL_RANK", "-1"}}), -1);
  EXPECT_EQ(index_for({{"LOCAL_RANK", "x"}}), -1);
  EXPECT_FALSE(gpu_of_rank({{"LOCAL_RANK", "0"}}, {}));
}

TEST(GpuOfARank, IsAmongThoseThatTheRankSees) {
  EXPECT_EQ(index_for({{"LOCAL_RANK", "1"}, {"CUDA_VISIBLE_DEVICES", "3,2"}}), 2);
  EXPECT_EQ(index_for({{"LOCAL_RANK", "1"}, {"CUDA_VISIBLE_DEVICES", "GPU-03,GPU-00"}}), 0);
  EXPECT_EQ(index_for({{"LOCAL_RANK", "0"}, {"CUDA_VISIBLE_DEVICES", ""}}), -1);
  // Launchers that give each rank one GPU leave LOCAL_RANK as it is.
  EXPECT_EQ(index_for({{"LOCAL_RANK", "3"}, {"CUDA_VISIBLE_DEVICES", "1"}}), 1);
}

TEST(GpuOfARank, OfAmdFollowsTheVariablesOfHip) {
  const auto amd = host::GpuVendor::amd;
  EXPECT_EQ(index_for({{"LOCAL_RANK", "1"}, {"HIP_VISIBLE_DEVICES", "3,2"}}, amd), 2);
  EXPECT_EQ(
      index_for(
          {{"LOCAL_RANK", "0"}, {"ROCR_VISIBLE_DEVICES", "1,2"}, {"HIP_VISIBLE_DEVICES", "1"}},
          amd),
      2);
}

TEST(GpuOfARank, WithMigIsTheSplitGpu) {
  auto gpus = four_gpus();
  gpus[1].mig_instances = 2;
  const auto gpu = gpu_of_rank({{"LOCAL_RANK", "3"}, {"CUDA_VISIBLE_DEVICES", "MIG-77aa"}}, gpus);
  ASSERT_TRUE(gpu);
  EXPECT_EQ(gpu->index, 1);
}

}  // namespace
}  // namespace lockstep::agent
