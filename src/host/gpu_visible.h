// Reads CUDA_VISIBLE_DEVICES and similar variables: a pure choice among the machine's GPUs.
#pragma once

#include "host/gpus.h"

#include <optional>
#include <string_view>
#include <vector>

namespace lockstep::host {

// Reads CUDA_VISIBLE_DEVICES like CUDA and torch.cuda.device_count(). Unset means all GPUs. Entries
// are used in order up to the first invalid one: negative, not a number, beyond the last GPU, an
// unknown or ambiguous UUID prefix, or another kind than the first entry. A repeated entry selects
// no GPU at all.
//
// MIG: a process can use only one compute instance, so a choice with a split GPU counts as one
// device. (torchrun 2.14 counts the physical GPUs instead, and its second worker then fails.)
std::vector<Gpu> choose_nvidia(const std::vector<Gpu>& gpus,
                               const std::optional<std::string>& cuda_visible_devices);

// Applies ROCR_VISIBLE_DEVICES first (numbers or UUIDs). Among the remaining GPUs, applies
// HIP_VISIBLE_DEVICES, or CUDA_VISIBLE_DEVICES if the former is unset.
std::vector<Gpu> choose_amd(const std::vector<Gpu>& gpus, const GpuEnvironment& env);

// Applies ZE_AFFINITY_MASK: "0,2" or "0.1" (a tile counts as its card). Each card counts once.
std::vector<Gpu> choose_intel(const std::vector<Gpu>& gpus,
                              const std::optional<std::string>& ze_affinity_mask);

}  // namespace lockstep::host
