// What a node finds out about itself before a job's ranks start there, in a few milliseconds, plus
// what nvidia-smi takes where it is asked.
#pragma once

#include "slurm/preflight.h"

#include <string>

namespace lockstep::slurm {

struct NodeQuestion {
  std::string job_folder;
  bool thorough = true;   // nvidia-smi may be asked
  std::string root = {};  // of /proc, /sys and /dev; "" except in tests
};
NodeFacts probe_node(const NodeQuestion& question);

// How many GPUs of this node Slurm gave the step. Pure: the variables' values; nullptr: not set.
int gpus_given(const char* on_node, const char* of_step);

// "GPU-5c89…, 1234, 512" for each process on a GPU, by nvidia-smi; those on GPUs that are not among
// `uuids` are passed over. "pid 1234". Pure.
std::vector<std::string> gpu_users(std::string_view listed, const std::vector<std::string>& uuids);

}  // namespace lockstep::slurm
