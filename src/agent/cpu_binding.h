// --numa-binding on this machine: which CPUs each worker gets.
#pragma once

#include "agent/launch_config.h"
#include "base/error.h"

#include <vector>

namespace lockstep::agent {

// By local rank; empty lists without --numa-binding. Reads /sys once, at the start.
Result<std::vector<std::vector<int>>> plan_cpu_binding(NumaBinding mode, int nproc);

}  // namespace lockstep::agent
