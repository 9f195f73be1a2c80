// The two steps of building a wheel on a node: ask the nodes about common properties, then build on
// one node. Pure.
#pragma once

#include "slurm/sbatch_options.h"
#include "slurm/sinfo_command.h"

#include <string>
#include <string_view>
#include <vector>

namespace lockstep::slurm {

// Facts about the nodes that a job with these options may get.
struct WheelNodes {
  std::string partition = {};             // empty: Slurm's default partition, if unknown
  int nodes = 0;                          // in service
  int idle = 0;                           // idle nodes; powered-down nodes do not count
  int mixed = 0;                          // partly used nodes; may have room
  int cpus = 0;                           // of the smallest node
  std::string arch = {};                  // arch list of their GPUs; empty: unknown type, or no GPU
  std::vector<std::string> unknown = {};  // GPU types that are unknown here
};
WheelNodes wheel_nodes(const std::vector<Setting>& settings, const std::vector<NodeGroup>& groups);

struct StepBinary {
  std::string path;  // lockstep on this host
  // Value of SLURM_BCAST, with which srun copies the binary to the nodes; empty: nodes see the
  // path. Not an option: every user can read options while the job waits, and could prepare the
  // target folder.
  std::string carry;
};
// Returns how many nodes to ask, in order of preference: take the next number if so many are not
// free.
std::vector<int> ask_counts(const WheelNodes& nodes);
// Returns the srun call that asks any `count` free nodes.
std::vector<std::string> ask_step(const std::vector<Setting>& settings, int count,
                                  const StepBinary& binary);
// Returns the srun call that builds on one node. words: arguments of lockstep.
std::vector<std::string> build_step(const std::vector<Setting>& settings, const WheelNodes& nodes,
                                    const StepBinary& binary,
                                    const std::vector<std::string>& words);

}  // namespace lockstep::slurm
