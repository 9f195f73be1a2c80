// A table of NVIDIA's GPU names and their compute capabilities. Needed where the driver cannot be
// asked: nvidia-smi of older drivers does not report the capability, and Slurm knows only the type
// of a node's GPUs. Pure.
#pragma once

#include <string_view>

namespace lockstep::setup {

// Returns the compute capability times ten: 80 for "NVIDIA A100-SXM4-80GB". name: the product name
// of nvidia-smi, or a site's name for the type in Slurm, such as "rtx_2080ti" (75). Returns 0 for
// an unknown name.
int capability_of(std::string_view name);

}  // namespace lockstep::setup
