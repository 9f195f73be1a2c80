#include "setup/toolchain.h"

#include "setup/gpu_table.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace lockstep::setup {
namespace {

TEST(Releases, TheirFirstTwoNumbersCount) {
  EXPECT_EQ(read_release("12.2.0"), (Release{12, 2}));
  EXPECT_EQ(read_release("2.14.1+debian"), (Release{2, 14}));
  EXPECT_EQ(read_release("1.13.0a0"), (Release{1, 13}));
  EXPECT_EQ(read_release("13"), (Release{13, 0}));
  EXPECT_FALSE(read_release("x12"));
  EXPECT_FALSE(read_release(""));
  EXPECT_FALSE(read_release("12345678901234567890"));
  EXPECT_LT((Release{2, 9}), (Release{2, 14}));
}

TEST(Archs, AreReadAsTorchReadsThem) {
  const auto archs = read_archs("8.0;9.0a 12.1+PTX,7.5");
  ASSERT_TRUE(archs);
  EXPECT_EQ(archs_text(*archs), "8.0;9.0a;12.1+PTX;7.5");
  EXPECT_EQ((*archs)[2].capability, 121);
  for (const char* bad : {"", ";", "80", "8", "Ampere", "8.0+ptx", "8.0b", "8.x", "8.", "8.10"})
    EXPECT_FALSE(read_archs(bad)) << bad;
  EXPECT_EQ(archs_text(*read_archs("V100, A100;RTX-A6000 h100 9.0+PTX")),
            "7.0;8.0;8.6;9.0;9.0+PTX");
  EXPECT_NE(read_archs("8.0;Ampere").error().message.find("'Ampere'"), std::string::npos);
}

// The list for nvcc 13.0.88 is its own output. The other lists are from release notes.
TEST(Archs, AToolkitTakesWhatItsNvccKnows) {
  EXPECT_EQ(accepted_archs({13, 0}),
            (std::vector<int>{75, 80, 86, 87, 88, 89, 90, 100, 103, 110, 120, 121}));
  const auto of_11_7 = accepted_archs({11, 7});
  EXPECT_EQ(of_11_7.back(), 87);
  EXPECT_EQ(of_11_7.front(), 50);
  EXPECT_TRUE(check_archs({{90}, {75, "+PTX"}}, {13, 0}));
  const auto volta = check_archs({{70}}, {13, 0});
  ASSERT_FALSE(volta);
  EXPECT_NE(volta.error().message.find("7.0: it needs CUDA 12.x or older"), std::string::npos)
      << volta.error().message;
  const auto ada = check_archs({{80}, {89}}, {11, 7});
  ASSERT_FALSE(ada);
  EXPECT_NE(ada.error().message.find("8.9: it needs CUDA 11.8 or newer"), std::string::npos);
  EXPECT_NE(ada.error().hint.find("8.6, 8.7"), std::string::npos);
  EXPECT_FALSE(check_archs({{85}}, {13, 0}));
}

TEST(Compilers, NvccTakesAWindowOfGccs) {
  const auto below = [](int major, int minor) {
    const auto window = gcc_window({major, minor});
    return window ? window->below : 0;
  };
  EXPECT_EQ(below(10, 2), 0);
  EXPECT_EQ(below(11, 0), 10);
  EXPECT_EQ(below(11, 3), 11);
  EXPECT_EQ(below(11, 8), 12);
  EXPECT_EQ(below(12, 2), 13);
  EXPECT_EQ(below(12, 3), 14);
  EXPECT_EQ(below(12, 8), 15);
  EXPECT_EQ(below(13, 0), 16);
  EXPECT_EQ(below(14, 0), 0);
}

TEST(Compilers, TorchsHeadersNeedAStandard) {
  EXPECT_EQ(oldest_gcc_for({1, 13}), 5);
  EXPECT_EQ(oldest_gcc_for({2, 1}), 9);
  EXPECT_EQ(oldest_gcc_for({2, 14}), 11);
}

std::string_view first(const Toolchain& tools, bool trouble) {
  for (const Finding& each : findings_of(tools))
    if (each.trouble == trouble) return each.what;
  return "";
}

Toolchain good() {
  return {.gcc = "/usr/bin/g++",
          .gcc_version = Release{12, 2},
          .nvcc = "/usr/local/cuda/bin/nvcc",
          .cuda = Release{12, 4},
          .python = "/usr/bin/python3",
          .headers = true,
          .torch = "2.6.0+cu124",
          .torch_cuda = Release{12, 4}};
}

TEST(Toolchains, OneThatFitsHasNoFinding) {
  EXPECT_TRUE(findings_of(good()).empty());
  Toolchain minor = good();
  minor.cuda = Release{12, 6};
  EXPECT_TRUE(findings_of(minor).empty());
}

TEST(Toolchains, WhatDoesNotFitIsNamed) {
  Toolchain tools = good();
  tools.gcc_version = Release{14, 1};
  EXPECT_EQ(first(tools, true), "gcc-too-new");
  tools = good();
  tools.gcc_version = Release{7, 5};
  EXPECT_EQ(first(tools, true), "gcc-too-old");
  tools = good();
  tools.cuda = Release{11, 8};
  tools.gcc_version = Release{11, 0};
  EXPECT_EQ(first(tools, true), "cuda-differs");
  tools = good();
  tools.cuda = Release{13, 1};
  tools.torch_cuda = Release{13, 0};
  EXPECT_EQ(first(tools, true), "");
  EXPECT_EQ(first(tools, false), "cuda-minor-differs");
  tools = good();
  tools.nvcc.clear();
  tools.cuda.reset();
  EXPECT_EQ(first(tools, false), "no-nvcc");
  tools.torch_cuda.reset();
  EXPECT_TRUE(findings_of(tools).empty());
  tools.torch.clear();
  EXPECT_EQ(first(tools, false), "no-torch");
  tools = good();
  tools.headers = false;
  EXPECT_EQ(first(tools, false), "no-python-headers");
  tools = good();
  tools.gcc.clear();
  tools.gcc_version.reset();
  EXPECT_EQ(first(tools, false), "no-gcc");
}

// If a gcc fits both PyTorch and CUDA, the cure names that gcc.
TEST(Toolchains, TheCureSuitsTorchAndCudaAtOnce) {
  Toolchain tools = good();
  tools.torch = "2.14.1";
  tools.cuda = tools.torch_cuda = Release{12, 8};
  tools.gcc_version = Release{7, 5};
  const auto found = findings_of(tools);
  ASSERT_EQ(found.size(), 1U);
  EXPECT_NE(found[0].text.find("C++20"), std::string::npos);
  EXPECT_NE(found[0].cure.find("gcc 11 to 14"), std::string::npos) << found[0].cure;
}

TEST(GpuTable, NamesOfNvidiaSmiAreKnown) {
  const std::vector<std::pair<const char*, int>> names = {
      {"NVIDIA A100-SXM4-80GB", 80},
      {"Tesla V100-SXM2-16GB", 70},
      {"NVIDIA H100 80GB HBM3", 90},
      {"NVIDIA GH200 480GB", 90},
      {"NVIDIA B200", 100},
      {"NVIDIA GB300", 103},
      {"NVIDIA GB10", 121},
      {"NVIDIA GeForce RTX 4090", 89},
      {"NVIDIA GeForce RTX 3080 Ti", 86},
      {"NVIDIA GeForce RTX 2080 Ti", 75},
      {"NVIDIA GeForce GTX 1660 SUPER", 75},
      {"NVIDIA GeForce GTX 1080", 61},
      {"NVIDIA GeForce RTX 5090", 120},
      {"NVIDIA RTX A6000", 86},
      {"NVIDIA RTX 6000 Ada Generation", 89},
      {"NVIDIA RTX PRO 6000 Blackwell Workstation Edition", 120},
      {"Quadro RTX 8000", 75},
      {"Quadro P4000", 61},
      {"NVIDIA L4", 89},
      {"NVIDIA L40S", 89},
      {"NVIDIA A10G", 86},
      {"NVIDIA A30", 80},
      {"Tesla T4", 75},
      {"Tesla P100-PCIE-16GB", 60},
      {"NVIDIA TITAN RTX", 75},
      {"NVIDIA TITAN V", 70},
      {"NVIDIA GeForce GTX TITAN X", 52},
      {"NVIDIA TITAN X (Pascal)", 61},
      {"NVIDIA Z9999", 0},
      {"Quadro RTX 5000", 75},
      {"Quadro RTX 4000", 75},
      {"", 0}};
  for (const auto& [name, capability] : names)
    EXPECT_EQ(capability_of(name), capability) << name;
}

TEST(GpuTable, NamesOfSitesAreKnown) {
  const std::vector<std::pair<const char*, int>> names = {{"a100", 80},
                                                          {"A100", 80},
                                                          {"nvidia_a100-sxm4-80gb", 80},
                                                          {"a100_80gb", 80},
                                                          {"h100", 90},
                                                          {"nvidia_h100_80gb_hbm3", 90},
                                                          {"gh200", 90},
                                                          {"h200", 90},
                                                          {"v100", 70},
                                                          {"v100s", 70},
                                                          {"tesla_v100", 70},
                                                          {"t4", 75},
                                                          {"rtx3090", 86},
                                                          {"3090", 86},
                                                          {"rtx_2080ti", 75},
                                                          {"rtx8000", 75},
                                                          {"geforce_rtx_4090", 89},
                                                          {"rtx6000ada", 89},
                                                          {"6000ada", 89},
                                                          {"rtxa6000", 86},
                                                          {"l4", 89},
                                                          {"l40s", 89},
                                                          {"a40", 86},
                                                          {"a10", 86},
                                                          {"a10g", 86},
                                                          {"a16", 86},
                                                          {"a2", 86},
                                                          {"a6000", 86},
                                                          {"b200", 100},
                                                          {"p100", 60},
                                                          {"titanrtx", 75},
                                                          {"gpu", 0},
                                                          {"gtx", 0},
                                                          {"mi250", 0},
                                                          {"shard", 0}};
  for (const auto& [name, capability] : names)
    EXPECT_EQ(capability_of(name), capability) << name;
}

}  // namespace
}  // namespace lockstep::setup
