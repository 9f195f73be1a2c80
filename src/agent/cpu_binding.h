// --numa-binding on this machine: which CPUs each worker gets.
#pragma once

#include "base/error.h"
#include "launch/launch_config.h"

#include <vector>

namespace lockstep::agent {

// By local rank; empty lists without --numa-binding. Reads /sys once, at the start.
Result<std::vector<std::vector<int>>> plan_cpu_binding(launch::NumaBinding mode, int nproc);

}  // namespace lockstep::agent
