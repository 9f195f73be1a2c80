#include "machine/health_probe.h"

#include <gtest/gtest.h>

namespace lockstep::machine {
namespace {

TEST(HealthProbe, ReadsWhatTheDriverListsAndWhatOpensThem) {
  HealthFacts facts;
  take_driver_rows(
      "580.95.05, NVIDIA H100 80GB HBM3, 81559\n580.95.05, NVIDIA H100 80GB HBM3, 81559\n"
      "garbage\n",
      facts);
  EXPECT_EQ(facts.driver, "580.95.05");
  ASSERT_EQ(facts.gpus.size(), 2U);
  EXPECT_EQ(facts.gpus[1].name, "NVIDIA H100 80GB HBM3");
  EXPECT_EQ(facts.gpus[1].memory_mb, 81559);
  take_cuda_answer("hello\nlockstep:{\"cuda\": \"opened\", \"error\": \"\", \"opened\": 2}\n",
                   facts);
  EXPECT_EQ(facts.cuda, HealthFacts::Cuda::opened);
  EXPECT_EQ(facts.cuda_gpus, 2);
}

TEST(HealthProbe, WhatDoesNotOpenThemSaysWhy) {
  HealthFacts facts;
  take_cuda_answer(
      "lockstep:{\"cuda\": \"failed\", \"error\": \"cuInit: 802 (x)\", \"code\": 802, "
      "\"opened\": 0}",
      facts);
  EXPECT_EQ(facts.cuda, HealthFacts::Cuda::failed);
  EXPECT_EQ(facts.cuda_error, "cuInit: 802 (x)");
  EXPECT_EQ(facts.cuda_code, 802);
  facts = {};
  take_cuda_answer("lockstep:{\"cuda\": \"no library\", \"error\": \"\", \"opened\": 0}", facts);
  EXPECT_EQ(facts.cuda, HealthFacts::Cuda::no_library);
  facts = {};
  take_cuda_answer("lockstep:[]\nTraceback\n", facts);
  EXPECT_EQ(facts.cuda, HealthFacts::Cuda::not_opened);
}

TEST(HealthProbe, FindsFailuresInTheKernelsLog) {
  const auto lines = xid_lines(
      "[    1.0] NVRM: loading NVIDIA UNIX Open Kernel Module\n"
      "[  600.1] NVRM: Xid (PCI:0000:17:00): 79, pid=1, GPU has fallen off the bus.\n");
  ASSERT_EQ(lines.size(), 1U);
  EXPECT_NE(lines[0].find("79"), std::string::npos);
}

TEST(HealthProbe, AMachineWithoutGpusTellsOfItsDisk) {
  const HealthFacts facts = probe_health(false);
  EXPECT_EQ(facts.disk_error, "");
  EXPECT_GT(facts.disk_free, 0);
  EXPECT_TRUE(facts.gpus.empty());
}

}  // namespace
}  // namespace lockstep::machine
