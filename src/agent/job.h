// One `lockstep run` on this node, from the validated configuration to the exit code. Sets up
// containment, store and logs, runs the job, and tells the outcome. Single-threaded. Blocks until
// the job is over.
#pragma once

#include "base/error.h"
#include "launch/launch_config.h"

namespace lockstep::agent {

// Returns the process's exit code. An Error means that nothing was started and nothing is left
// behind: a port is taken, the log directory cannot be made, the isolation rung is unavailable. The
// caller must have blocked the handled signals (proc/signals.h). reported: set to whether the job
// has written its --report; it has also where its nodes never met, which is an Error.
Result<int> run_job(const launch::LaunchConfig& config, bool& reported);

}  // namespace lockstep::agent
