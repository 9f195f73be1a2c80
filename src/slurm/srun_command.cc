#include "slurm/srun_command.h"

#include <fmt/core.h>

namespace lockstep::slurm {

// --no-kill and --kill-on-bad-exit=0: one node that fails must not end the answers of the others.
std::vector<std::string> srun_beside_command(const std::string& job, int nodes,
                                             const std::vector<std::string>& argv) {
  std::vector<std::string> words = {"srun",
                                    "--jobid=" + job,
                                    fmt::format("--nodes={}", nodes),
                                    fmt::format("--ntasks={}", nodes),
                                    "--ntasks-per-node=1",
                                    "--cpus-per-task=1",
                                    "--overlap",
                                    "--mem=0",
                                    "--gres=none",
                                    "--mpi=none",
                                    "--export=NONE",
                                    "--input=none",
                                    "--label",
                                    "--quiet",
                                    "--no-kill",
                                    "--kill-on-bad-exit=0"};
  words.insert(words.end(), argv.begin(), argv.end());
  return words;
}

}  // namespace lockstep::slurm
