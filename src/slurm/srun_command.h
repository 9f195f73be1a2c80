// srun: its argv for a program inside a running job.
#pragma once

#include <string>
#include <vector>

namespace lockstep::slurm {

// Returns the call that runs a program once on each of the job's `nodes` nodes, beside the steps
// that have all CPUs, memory and GPUs of the job. argv: begins with an absolute path.
std::vector<std::string> srun_beside_command(const std::string& job, int nodes,
                                             const std::vector<std::string>& argv);

}  // namespace lockstep::slurm
