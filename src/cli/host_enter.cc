// lockstep host-enter: becomes a command where the ranks of a job on this host run, or srun, which
// leads to the nodes of a Slurm job. `lockstep exec JOB` starts this on hosts.
#include "base/environment.h"
#include "cli/exec_options.h"
#include "cli/subcommand.h"
#include "io/own_folders.h"
#include "job/enter_job.h"
#include "jobs/on_slurm/slurm_agents.h"
#include "jobs/on_slurm/slurm_once.h"
#include "proc/exec_pointers.h"
#include "proc/spawn.h"

#include <unistd.h>

#include <optional>
#include <utility>

namespace lockstep::cli {
namespace {

using jobs::on_slurm::kInStep;

// Becomes srun, so that signals reach srun itself. Returns only an error.
Error become(const hosts::LinkCommand& command) {
  const auto program = proc::find_executable(command.argv.at(0), env_text("PATH"));
  if (!program) return program.error();
  execve(program->c_str(), proc::exec_pointers(command.argv).data(),
         proc::exec_pointers(command.env).data());
  return fail_sys("run " + *program, errno).value();
}

Error enter(const Args& words) {
  const bool in_step = !words.empty() && words.front() == kInStep;
  auto request = job::read_enter(in_step ? Args(words.begin() + 1, words.end()) : words);
  if (!request) return request.error();
  const auto submitted = in_step ? std::nullopt : jobs::on_slurm::find_submitted(request->job);
  if (!submitted) return job::enter_job(*request);
  const auto place = jobs::on_slurm::slurm_place(*submitted);
  auto command = jobs::on_slurm::enter_on_nodes(*submitted, *place, std::move(*request));
  return command ? become(*command) : command.error();
}

// The codes of a shell, and ssh's where the job is not.
ExitCode code_of_enter(Errc code) {
  if (code == Errc::not_found) return ExitCode::not_found;
  if (code == Errc::denied) return ExitCode::cannot_run;
  return ExitCode::not_reached;
}

Result<ExitCode> enter_command(const Call& call) {
  const Error error = enter(call.words);
  print_error(exec_table().program, error);
  return code_of_enter(error.code);
}

}  // namespace

extern constinit const Subcommand kHostEnter{.name = "host-enter",
                                             .summary = "a command in a job on this host",
                                             .run = enter_command,
                                             .listed = false};

}  // namespace lockstep::cli
