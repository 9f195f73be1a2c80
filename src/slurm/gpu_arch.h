// Tells which GPUs a TORCH_CUDA_ARCH_LIST covers. Pure.
#pragma once

#include <string_view>

namespace lockstep::slurm {

// Returns whether code built for `list` runs on a GPU. list: "8.0;9.0+PTX", or names like "Ampere".
// Code for X.Y runs on X.Z with Z >= Y, and "+PTX" on everything later. Unknown entries count as
// covering, so that a check never blames what it cannot read. capability: 86 for 8.6.
bool arch_list_covers(std::string_view list, int capability);

}  // namespace lockstep::slurm
