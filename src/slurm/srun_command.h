// srun: its argv for a program inside a running job.
#pragma once

#include <string>
#include <vector>

namespace lockstep::slurm {

// Returns the call that runs a program once on each of the job's `nodes` nodes, beside the steps
// that have all CPUs, memory and GPUs of the job. argv: begins with an absolute path.
std::vector<std::string> srun_beside_command(const std::string& job, int nodes,
                                             const std::vector<std::string>& argv);

// Returns the call that runs a program once, on the job's node number `node` (from 0), in the same
// way. srun's own stdin and stdout are those of the program, byte for byte. The program's stdout is
// a terminal.
std::vector<std::string> srun_stream_command(const std::string& job, int node,
                                             const std::vector<std::string>& argv);

// Returns the call that runs a user's program once on each node, in the same way. srun's stdin goes
// to all of them, lines of several nodes begin with the node's number, and Ctrl-C ends all at once.
// variables: names of srun's variables that the program gets.
std::vector<std::string> srun_exec_command(const std::string& job, int nodes,
                                           const std::vector<std::string>& variables,
                                           const std::vector<std::string>& argv);

}  // namespace lockstep::slurm
