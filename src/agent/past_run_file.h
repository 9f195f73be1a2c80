// Keeps the last runs of this user's commands in the file last-runs.json of the user's state
// folder.
#pragma once

#include "agent/past_runs.h"
#include "launch/launch_config.h"

#include <optional>
#include <string>

namespace lockstep::agent {

// Returns the key of a command: a digest of the working folder, the command of the workers and the
// number of nodes and workers. "": the working folder is gone.
std::string past_run_key(const launch::LaunchConfig& config);

// Notes a run, and returns the last run of the same command. Never waits, neither for a file server
// nor for another process: of two jobs that end at once, one may forget the other. nullopt: no run
// is known, or none can be kept because the user has no state folder on a local disk.
std::optional<PastRun> note_past_run(const PastRun& run);

}  // namespace lockstep::agent
