// lockstep slurm-rank: gives a rank the environment of a task of srun, then becomes the user's
// program. Agents of a user's own batch script start this, people do not.
#include "cli/subcommand.h"
#include "proc/exec_pointers.h"
#include "proc/spawn.h"
#include "proc/tool_output.h"
#include "slurm/old_environment.h"

#include <errno.h>
#include <unistd.h>

#include <string>
#include <vector>

namespace lockstep::cli {
namespace {

constexpr const char* kName = "lockstep slurm-rank";

Result<ExitCode> rank_command(const Call& call) {
  std::vector<std::string> words = call.words;
  if (!words.empty() && words.front() == "--") words.erase(words.begin());
  if (words.empty())
    return fail(Errc::invalid_input, "this is an internal command, started by agents");
  slurm::Variables variables = slurm::variables_of(proc::own_environment());
  // exec keeps the process id, so this is also the id of the user's program.
  slurm::become_task(std::to_string(getpid()), variables);
  const std::vector<std::string> environment = slurm::environment_of(variables);
  const auto program = proc::find_executable(words.front(), variables["PATH"]);
  if (!program) return refuse(kName, program.error(), always(ExitCode::not_found));

  execve(program->c_str(), proc::exec_pointers(words).data(),
         proc::exec_pointers(environment).data());
  const int error = errno;
  return refuse(kName, fail_sys("run " + *program, error).value(), always(ExitCode::cannot_run));
}

}  // namespace

extern constinit const Subcommand kSlurmRank{.name = "slurm-rank",
                                             .summary = "a rank with the environment of a task",
                                             .run = rank_command,
                                             .listed = false};

}  // namespace lockstep::cli
