// The CPUs of each worker under --numa-binding on this machine.
#pragma once

#include "base/error.h"
#include "launch/launch_config.h"

#include <vector>

namespace lockstep::agent {

// Returns one CPU list per local rank, empty lists without --numa-binding. Reads /sys and asks the
// GPU tools once, at the start of the job. Fails if the topology or the allowed CPUs cannot be
// read.
Result<std::vector<std::vector<int>>> plan_cpu_binding(launch::NumaBinding mode, int nproc);

}  // namespace lockstep::agent
