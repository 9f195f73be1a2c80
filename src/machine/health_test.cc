#include "machine/health.h"

#include <gtest/gtest.h>

#include <string>

namespace lockstep::machine {
namespace {

HealthFacts healthy() {
  HealthFacts facts;
  facts.driver = "580.95.05";
  facts.gpus.assign(8, {"NVIDIA A100-SXM4-80GB", 81920});
  facts.cuda = HealthFacts::Cuda::opened;
  facts.cuda_gpus = 8;
  facts.disk_free = std::int64_t{100} << 30;
  return facts;
}

const HealthWish kBought{.gpu = "A100-80GB", .gpus = 8};
const HealthMeasures kNear{.clock_ahead_ms = 12, .up_mb_s = 90, .down_mb_s = 80};

std::string sickness(const std::vector<HealthFinding>& findings) {
  for (const HealthFinding& finding : findings)
    if (finding.kind == HealthFinding::Kind::bad) return finding.what;
  return {};
}

Ailment ailment_of(const HealthFacts& facts) {
  for (const HealthFinding& finding : judge_health(facts, kNear, kBought))
    if (finding.kind == HealthFinding::Kind::bad) return finding.ailment;
  ADD_FAILURE() << "it is healthy";
  return Ailment::lasting;
}

std::string sickness_of(const HealthFacts& facts, const HealthMeasures& measures = kNear,
                        const HealthWish& wish = kBought) {
  return sickness(judge_health(facts, measures, wish));
}

TEST(Health, WhatWasBoughtAndOpensIsHealthy) {
  EXPECT_EQ(sickness_of(healthy()), "");
  const auto findings = judge_health(healthy(), kNear, kBought);
  ASSERT_EQ(findings.size(), 3U);
  EXPECT_EQ(findings[0].what, "driver 580.95.05, 8 x NVIDIA A100-SXM4-80GB");
  EXPECT_EQ(findings[1].what, "8 GPUs were opened");
  EXPECT_EQ(findings[2].what, "80.0 MB/s to the machine, 90.0 MB/s back");
}

// nvidia-smi lists the GPUs, but no program can use them.
TEST(Health, GpusThatAreListedButDoNotOpenAreSick) {
  HealthFacts facts = healthy();
  facts.cuda = HealthFacts::Cuda::failed;
  facts.cuda_error = "cuInit: 802 (system not yet initialized)";
  EXPECT_EQ(sickness_of(facts),
            "the GPUs can't be opened: cuInit: 802 (system not yet initialized)");
  facts = healthy();
  facts.cuda_gpus = 7;
  EXPECT_EQ(sickness_of(facts), "only 7 of 8 GPUs can be opened");
  facts.cuda = HealthFacts::Cuda::no_library;
  EXPECT_NE(sickness_of(facts), "");
  facts.cuda = HealthFacts::Cuda::not_opened;
  EXPECT_EQ(sickness_of(facts), "");
}

// Both defects pass while a machine boots. The running driver's report about its GPUs stays.
TEST(Health, WhatMayPassIsToldApart) {
  HealthFacts facts = healthy();
  facts.cuda = HealthFacts::Cuda::failed;
  facts.cuda_code = 802;
  EXPECT_EQ(ailment_of(facts), Ailment::no_fabric);
  for (const int code : {0, 2, 100, 803, 999}) {
    facts.cuda_code = code;
    EXPECT_EQ(ailment_of(facts), Ailment::lasting) << code;
  }
  facts.cuda = HealthFacts::Cuda::no_library;
  EXPECT_EQ(ailment_of(facts), Ailment::no_driver);
  facts.driver.clear();
  for (const char* words :
       {"nvidia-smi: No such file or directory",
        "nvidia-smi ended with 9: NVIDIA-SMI has failed because it couldn't communicate with the "
        "NVIDIA driver",
        "nvidia-smi did not end within 30 s"}) {
    facts.driver_error = words;
    EXPECT_EQ(ailment_of(facts), Ailment::no_driver) << words;
  }
  for (const char* words : {"nvidia-smi ended with 6: No devices were found",
                            "nvidia-smi ended with 18: Failed to initialize NVML: Driver/library "
                            "version mismatch"}) {
    facts.driver_error = words;
    EXPECT_EQ(ailment_of(facts), Ailment::lasting) << words;
  }
  facts = healthy();
  facts.gpus.pop_back();
  EXPECT_EQ(ailment_of(facts), Ailment::lasting);
}

TEST(Health, OtherGpusThanThoseBoughtAreSick) {
  HealthFacts facts = healthy();
  facts.gpus.pop_back();
  EXPECT_EQ(sickness_of(facts), "7 GPUs found, 8 were bought");
  facts = healthy();
  for (auto& gpu : facts.gpus)
    gpu = {"NVIDIA A100-SXM4-40GB", 40960};
  EXPECT_EQ(sickness_of(facts),
            "the GPU is a A100-40GB (NVIDIA A100-SXM4-40GB), and a A100-80GB was bought");
  facts = healthy();
  facts.gpus[3].name = "Graphics Device";
  EXPECT_EQ(sickness_of(facts), "");  // an unknown name is noted and proves nothing
}

TEST(Health, DriverKernelDiskAndClockCount) {
  HealthFacts facts = healthy();
  facts.driver.clear();
  facts.driver_error = "no devices were found";
  EXPECT_EQ(sickness_of(facts), "the NVIDIA driver does not answer: no devices were found");
  facts = healthy();
  facts.xids = {"NVRM: Xid (PCI:0000:17:00): 79, GPU has fallen off the bus."};
  EXPECT_NE(sickness_of(facts).find("79"), std::string::npos);
  facts = healthy();
  facts.disk_free = 1'000'000'000;
  EXPECT_EQ(sickness_of(facts), "the disk has 1.0 GB free, and 2.1 are needed");
  facts.disk_error = "Read-only file system";
  EXPECT_NE(sickness_of(facts).find("Read-only"), std::string::npos);
  EXPECT_EQ(sickness_of(healthy(), {.clock_ahead_ms = -7200}),
            "the clock is 7 s behind this machine's");
  EXPECT_EQ(sickness_of(healthy(), {.clock_ahead_ms = 4900}), "");
  // The client's own clock is a minute slow.
  EXPECT_EQ(sickness_of(healthy(), {.clock_ahead_ms = 60'200, .provider_ahead_ms = 59'800}), "");
  EXPECT_EQ(sickness_of(healthy(), {.clock_ahead_ms = 300, .provider_ahead_ms = 60'000}),
            "the clock is 60 s behind the provider's");
}

TEST(Health, ASlowLinkIsToldAndNoSickness) {
  const auto findings = judge_health(healthy(), {.up_mb_s = 6, .down_mb_s = 40}, kBought);
  EXPECT_EQ(findings.back().kind, HealthFinding::Kind::note);
  EXPECT_EQ(sickness(findings), "");
}

TEST(Health, AMachineWithoutGpusIsNotAskedForAny) {
  HealthFacts facts;
  facts.disk_free = std::int64_t{100} << 30;
  EXPECT_EQ(sickness_of(facts, kNear, {}), "");
}

TEST(Health, FactsComeBackAsTheyWereAndArePrintable) {
  HealthFacts facts = healthy();
  facts.xids = {"a\x1b[2J"};
  facts.cuda_error = "e";
  facts.cuda_code = 3;
  const auto json = codec::parse_json(codec::print_json(to_json(facts)));
  const auto again = health_from_json(json);
  ASSERT_TRUE(again);
  EXPECT_EQ(again->xids[0], "a\\x1b[2J");
  EXPECT_EQ(again->gpus.size(), 8U);
  EXPECT_EQ(again->cuda, HealthFacts::Cuda::opened);
  EXPECT_EQ(again->disk_free, facts.disk_free);
  EXPECT_EQ(again->cuda_code, 3);
  EXPECT_FALSE(health_from_json(codec::parse_json("[]")));
  EXPECT_FALSE(health_from_json(codec::parse_json(R"({"gpus": [1]})")));
}

}  // namespace
}  // namespace lockstep::machine
