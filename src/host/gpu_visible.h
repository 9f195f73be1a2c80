// Reads CUDA_VISIBLE_DEVICES and its kin: a pure choice among the GPUs of the machine.
#pragma once

#include "host/gpus.h"

#include <optional>
#include <string_view>
#include <vector>

namespace lockstep::host {

// As CUDA and torch.cuda.device_count() read CUDA_VISIBLE_DEVICES: unset means all GPUs. Entries
// are taken in order, up to the first invalid one (negative, no number, beyond the last GPU, an
// unknown or ambiguous UUID prefix, another kind than the first entry's). A repetition leaves none.
//
// MIG: a process can use only one compute instance, so any choice that holds a split GPU is one
// device. (torchrun 2.14 counts the physical GPUs instead, and its second worker then fails.)
std::vector<Gpu> choose_nvidia(const std::vector<Gpu>& gpus,
                               const std::optional<std::string>& cuda_visible_devices);

// ROCR_VISIBLE_DEVICES first (numbers or UUIDs), then among the rest HIP_VISIBLE_DEVICES, or
// CUDA_VISIBLE_DEVICES where that is unset.
std::vector<Gpu> choose_amd(const std::vector<Gpu>& gpus, const GpuEnvironment& env);

// ZE_AFFINITY_MASK: "0,2" or "0.1" (a tile counts as its card); each card once.
std::vector<Gpu> choose_intel(const std::vector<Gpu>& gpus,
                              const std::optional<std::string>& ze_affinity_mask);

}  // namespace lockstep::host
