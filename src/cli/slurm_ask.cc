// lockstep slurm-ask: the process that srun starts on every node of a running job to ask the node's
// agents what their ranks do. Reads only, but for the orders and the traces of `lockstep profile`.
// People do not call this.
#include "cli/subcommand.h"
#include "io/fd.h"
#include "job/job_requests.h"
#include "slurm/node_pieces.h"

#include <unistd.h>

#include <string>

namespace lockstep::cli {
namespace {

Result<ExitCode> ask_command(const Call& call) {
  LOCKSTEP_TRY_ASSIGN(const std::string answers, job::ask_agents_here(call.words));
  LOCKSTEP_TRY(io::write_all(STDOUT_FILENO, slurm::print_pieces(answers), "standard output"));
  return ExitCode::ok;
}

}  // namespace

extern constinit const Subcommand kSlurmAsk{.name = "slurm-ask",
                                            .summary = "ask the agents of a job on a node",
                                            .run = ask_command,
                                            .fails_with = always(ExitCode::failed),
                                            .listed = false};

}  // namespace lockstep::cli
