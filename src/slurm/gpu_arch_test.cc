#include "slurm/gpu_arch.h"

#include <gtest/gtest.h>

namespace lockstep::slurm {
namespace {

TEST(GpuArch, AnArchListCoversLaterMinorsAndPtx) {
  EXPECT_TRUE(arch_list_covers("8.0", 86));
  EXPECT_FALSE(arch_list_covers("8.6", 80));
  EXPECT_FALSE(arch_list_covers("7.5;8.6", 90));
  EXPECT_TRUE(arch_list_covers("7.5 8.6+PTX", 90));
  EXPECT_TRUE(arch_list_covers("9.0a", 90));
  EXPECT_FALSE(arch_list_covers("9.0a", 100));
  EXPECT_TRUE(arch_list_covers("Ampere;Hopper", 90));
  EXPECT_FALSE(arch_list_covers("Ampere", 90));
  EXPECT_TRUE(arch_list_covers("all", 90));
  EXPECT_TRUE(arch_list_covers("", 90));
}

}  // namespace
}  // namespace lockstep::slurm
