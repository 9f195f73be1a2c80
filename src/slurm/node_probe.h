// Checks a node before a job's ranks start there. Takes a few milliseconds, plus the time of
// nvidia-smi if asked.
#pragma once

#include "slurm/preflight.h"

#include <string>

namespace lockstep::slurm {

struct NodeQuestion {
  std::string job_folder;
  bool thorough = true;   // ask nvidia-smi, too
  std::string root = {};  // prefix of /proc, /sys and /dev; "" except in tests
};
NodeFacts probe_node(const NodeQuestion& question);

// Returns how many GPUs of this node Slurm gave the step. on_node: SLURM_GPUS_ON_NODE, of_step:
// SLURM_STEP_GPUS; nullptr: unset. Pure.
int gpus_given(const char* on_node, const char* of_step);

// Parses nvidia-smi's list of processes on GPUs ("GPU-5c89…, 1234") and returns "pid 1234" for each
// process on one of `uuids`. Pure.
std::vector<std::string> gpu_users(std::string_view listed, const std::vector<std::string>& uuids);

}  // namespace lockstep::slurm
