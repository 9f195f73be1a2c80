// The two steps of a wheel that is built on a node: the nodes are asked what they have in common,
// and one of them builds. Pure.
#pragma once

#include "slurm/sbatch_options.h"
#include "slurm/sinfo_command.h"

#include <string>
#include <string_view>
#include <vector>

namespace lockstep::slurm {

// What Slurm says of the nodes that a job with these options may get.
struct WheelNodes {
  std::string partition = {};  // empty: Slurm's default, which is not known
  int nodes = 0;               // in service
  int idle = 0;                // of them; powered down ones don't count
  int mixed = 0;               // of them, that may have room
  int cpus = 0;                // of the smallest
  std::string arch = {};       // of their GPUs, by name; empty: not all are known, or there is none
  std::vector<std::string> unknown = {};  // types of GPUs
};
WheelNodes wheel_nodes(const std::vector<Setting>& settings, const std::vector<NodeGroup>& groups);

struct StepBinary {
  std::string path;  // of lockstep here
  // SLURM_BCAST, for srun to bring it there; empty: the nodes see it. No option, as anybody can
  // read those while the job waits, and may write to the folder on the nodes.
  std::string carry;
};
// How many nodes to ask, if so many can be had now; else the next number, and so on.
std::vector<int> ask_counts(const WheelNodes& nodes);
// Asks `count` nodes, whichever are free now.
std::vector<std::string> ask_step(const std::vector<Setting>& settings, int count,
                                  const StepBinary& binary);
// Builds on one node; words go behind `lockstep`.
std::vector<std::string> build_step(const std::vector<Setting>& settings, const WheelNodes& nodes,
                                    const StepBinary& binary,
                                    const std::vector<std::string>& words);

}  // namespace lockstep::slurm
