#include "slurm/gpu_words.h"

#include <gtest/gtest.h>

namespace lockstep::slurm {
namespace {

TEST(GpuWords, AllSpellingsThatSlurmTakes) {
  for (const auto& [value, gpus] : std::vector<std::pair<std::string, CountedGpus>>{
           {"gpu", {"", 1}},
           {"gpu:2", {"", 2}},
           {"gpu=2", {"", 2}},
           {"gpu:a100", {"a100", 1}},
           {"gpu:a100:8(S:0)", {"a100", 8}},
           {"gres/gpu:2", {"", 2}},
           {"gres/gpu=2", {"", 2}},
           {"gres/gpu:a100=4", {"a100", 4}},
           {"gres:gpu:2", {"", 2}},
           {"nvme:1,gpu:h100:2", {"h100", 2}},
           {"gpu:a100:2,gpu:h100:1", {"a100", 3}},
           {"gpu:2147483647,gpu:2147483647", {"", 1 << 24}},
           {"gpu:a100:x", {"a100", std::nullopt}}})
    EXPECT_EQ(gpus_of_gres(value), gpus) << value;
  for (const char* none : {"", "nvme:1", "gpus:2", "cpu=4", "shard:3", "license/gpu:1"})
    EXPECT_FALSE(gpus_of_gres(none)) << none;
  for (const auto& [value, gpus] :
       std::vector<std::pair<std::string, CountedGpus>>{{"8", {"", 8}},
                                                        {"a100:8", {"a100", 8}},
                                                        {"a100=8", {"a100", 8}},
                                                        {"gpu:a100:8", {"a100", 8}},
                                                        {"a100:2,h100:6", {"a100", 8}},
                                                        {"x", {"", std::nullopt}},
                                                        {"", {"", std::nullopt}}})
    EXPECT_EQ(gpus_of_count(value), gpus) << value;
}

TEST(GpuWords, WhatATaskHas) {
  const TresPerTask both = read_tres_per_task("cpu:2,gres/gpu:a100=1");
  EXPECT_EQ(both.cpus, 2);
  EXPECT_EQ(both.gpus, (CountedGpus{"a100", 1}));
  EXPECT_TRUE(both.rest.empty());
  const TresPerTask odd = read_tres_per_task("cpu=x,license/a:1,gres/gpu:a100:y");
  EXPECT_FALSE(odd.cpus);
  EXPECT_EQ(odd.rest, (std::vector<std::string>{"cpu=x", "license/a:1", "gres/gpu:a100:y"}));
}

}  // namespace
}  // namespace lockstep::slurm
