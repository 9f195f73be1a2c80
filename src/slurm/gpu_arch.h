// Which GPUs an arch list covers. Pure.
#pragma once

#include <string_view>

namespace lockstep::slurm {

// TORCH_CUDA_ARCH_LIST: "8.0;9.0+PTX", or names as "Ampere". Code for X.Y runs on X.Z with Z >= Y,
// and
// "+PTX" on everything later. What is not understood counts as covering. capability: 86 of 8.6.
bool arch_list_covers(std::string_view list, int capability);

}  // namespace lockstep::slurm
