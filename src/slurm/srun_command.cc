#include "slurm/srun_command.h"

#include "base/text.h"

#include <fmt/core.h>

namespace lockstep::slurm {
namespace {

// Returns the words of a step that claims no CPU, memory or GPU: other steps have all of the job's.
// --kill-on-bad-exit=0: a failing node must not end the answers of the other nodes.
std::vector<std::string> step_beside(const std::string& job, int nodes) {
  return {"srun",
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
          "--quiet",
          "--kill-on-bad-exit=0"};
}

}  // namespace

// --no-kill for the reason of --kill-on-bad-exit=0.
std::vector<std::string> srun_beside_command(const std::string& job, int nodes,
                                             const std::vector<std::string>& argv) {
  std::vector<std::string> words = step_beside(job, nodes);
  words.insert(words.end(), {"--input=none", "--label", "--no-kill"});
  words.insert(words.end(), argv.begin(), argv.end());
  return words;
}

// Without --unbuffered, Slurm holds bytes back until a line ends or 1024 bytes have come. With
// --unbuffered the program's output is a terminal, which Slurm sets to change no byte.
std::vector<std::string> srun_stream_command(const std::string& job, int node,
                                             const std::vector<std::string>& argv) {
  std::vector<std::string> words = step_beside(job, 1);
  words.insert(words.end(), {fmt::format("--relative={}", node), "--unbuffered"});
  words.insert(words.end(), argv.begin(), argv.end());
  return words;
}

// --export takes names only: a value would be in srun's command line. The last --export counts.
std::vector<std::string> srun_exec_command(const std::string& job, int nodes,
                                           const std::vector<std::string>& variables,
                                           const std::vector<std::string>& argv) {
  std::vector<std::string> words = step_beside(job, nodes);
  words.insert(words.end(), {"--no-kill", "--quit-on-interrupt"});
  if (nodes > 1) words.emplace_back("--label");
  if (!variables.empty()) words.push_back("--export=" + join(variables, ","));
  words.insert(words.end(), argv.begin(), argv.end());
  return words;
}

}  // namespace lockstep::slurm
