// The compute capability of NVIDIA's GPUs by their names, where nvidia-smi does not tell it. Pure.
#pragma once

#include <string_view>

namespace lockstep::setup {

// "NVIDIA A100-SXM4-80GB" -> 80; sites' own names in Slurm count, too: "rtx_2080ti" -> 75. 0: the
// name is not known.
int capability_of(std::string_view name);

}  // namespace lockstep::setup
