// One `lockstep run` on this node, from the validated configuration to the exit code: sets up
// containment, store and logs, carries out what the WorkerGroup table decides, and tells the end.
// Single-threaded; blocks until the job is over.
#pragma once

#include "base/error.h"
#include "launch/launch_config.h"

namespace lockstep::agent {

// The process's exit code. An Error means that nothing was started (and nothing is left): a port
// taken, no log directory, a rung of isolation that can't be had. Expects the handled signals
// blocked.
Result<int> run_job(const launch::LaunchConfig& config);

}  // namespace lockstep::agent
