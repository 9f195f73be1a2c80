#include "cloud/gcp/types.h"

#include <algorithm>

namespace lockstep::cloud::gcp {
namespace {

// These types have an on-demand price, but Google does not sell them on demand.
constexpr std::string_view kNotOnDemand = "spot, flex-start or reservation only";

// The first matching row wins. Local disks are billed apart: 375 GB for each A100-80GB GPU, 750 GB
// (6,000 GB for eight) for each H100 GPU.
constexpr std::array kSeries = {
    Series{.start = "n1-standard-", .part = "n1"},
    Series{.start = "e2-small", .part = "e2", .plain_percent = 25},
    Series{.start = "g2-", .part = "g2"},
    Series{.start = "g4-", .part = "g4", .hyperdisk = true},
    Series{.start = "a2-ultragpu-", .part = "a2", .ssd_gb_per_gpu = 375},
    Series{.start = "a2-", .part = "a2"},
    Series{.start = "a3-highgpu-8g", .part = "a3", .ssd_gb_per_gpu = 750},
    Series{.start = "a3-highgpu-", .part = "a3", .ssd_gb_per_gpu = 750, .only = kNotOnDemand},
    Series{.start = "a3-edgegpu-", .part = "a3", .ssd_gb_per_gpu = 750},
    Series{.start = "a3-megagpu-", .part = "a3plus", .ssd_gb_per_gpu = 750},
    Series{.start = "a3-ultragpu-",
           .part = "a3ultra",
           .ssd_gb_per_gpu = 1500,
           .hyperdisk = true,
           .only = kNotOnDemand},
    Series{.start = "a4x-", .part = "", .hyperdisk = true, .arm = true, .only = kNotOnDemand},
    Series{.start = "a4-", .part = "", .hyperdisk = true, .only = kNotOnDemand},
};

constexpr std::array kAccelerators = {
    Accelerator{"nvidia-tesla-t4", "T4", {"Nvidia Tesla T4 GPU"}, "NVIDIA_T4_GPUS", {48, 48, 96}},
    Accelerator{
        "nvidia-tesla-p100", "P100", {"Nvidia Tesla P100 GPU"}, "NVIDIA_P100_GPUS", {16, 32, 96}},
    Accelerator{"nvidia-tesla-v100",
                "V100-16GB",
                {"Nvidia Tesla V100 GPU"},
                "NVIDIA_V100_GPUS",
                {12, 24, 48, 96}},
    Accelerator{"nvidia-l4", "L4", {"Nvidia L4 GPU"}, "NVIDIA_L4_GPUS"},
    Accelerator{"nvidia-rtx-pro-6000",
                "RTXPRO6000",
                {"RTX 6000 96GB", "Nvidia RTX Pro 6000 GPU", "Nvidia RTX PRO 6000 GPU"},
                "NVIDIA_RTX_PRO_6000_GPUS"},
    Accelerator{"nvidia-tesla-a100", "A100-40GB", {"Nvidia Tesla A100 GPU"}, "NVIDIA_A100_GPUS"},
    Accelerator{
        "nvidia-a100-80gb", "A100-80GB", {"Nvidia Tesla A100 80GB GPU"}, "NVIDIA_A100_80GB_GPUS"},
    Accelerator{"nvidia-h100-80gb", "H100-SXM", {"Nvidia H100 80GB GPU"}, "NVIDIA_H100_GPUS"},
    Accelerator{
        "nvidia-h100-mega-80gb",
        "H100-SXM",
        {"Nvidia H100 80GB Mega GPU", "Nvidia H100 80GB Plus GPU", "Nvidia H100 Mega 80GB GPU"},
        "NVIDIA_H100_MEGA_GPUS"},
    Accelerator{"nvidia-h200-141gb",
                "H200",
                {"H200 141GB GPU", "Nvidia H200 141GB GPU"},
                "NVIDIA_H200_GPUS"},
    Accelerator{"nvidia-b200", "B200", {"A4 Nvidia B200 (1 gpu slice)"}, "NVIDIA_B200_GPUS"},
};

}  // namespace

const Series* series_of(std::string_view type) {
  const auto* found = std::find_if(kSeries.begin(), kSeries.end(), [&](const Series& series) {
    return type.starts_with(series.start);
  });
  return found == kSeries.end() ? nullptr : found;
}

std::span<const Accelerator> accelerators() {
  return kAccelerators;
}

const Accelerator* find_accelerator(std::string_view name) {
  for (const Accelerator& one : kAccelerators)
    if (one.name == name) return &one;
  return nullptr;
}

TypeName parse_type(std::string_view type) {
  const std::size_t plus = type.find('+');
  if (plus == std::string_view::npos) return {std::string(type), {}};
  return {std::string(type.substr(0, plus)), std::string(type.substr(plus + 1))};
}

}  // namespace lockstep::cloud::gcp
