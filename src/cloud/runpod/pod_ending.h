// The command by which a pod terminates itself. RunPod puts the program and the variables into each
// pod.
#pragma once

#include "cloud/guard_timer.h"

namespace lockstep::cloud::runpod {

inline constexpr MachineEnding kPodEnding{
    .word = "runpod", .command = "runpodctl remove pod \"$RUNPOD_POD_ID\"", .variables = "RUNPOD_"};

}  // namespace lockstep::cloud::runpod
