// The compute capability of NVIDIA's GPUs by name, for drivers without that report. Pure.
#pragma once

#include <string_view>

namespace lockstep::setup {

// Returns the capability times ten: "NVIDIA A100-SXM4-80GB" gives 80. Names that sites use in Slurm
// work, too: "rtx_2080ti" gives 75. Returns 0 for an unknown name.
int capability_of(std::string_view name);

}  // namespace lockstep::setup
