// lockstep host-job: answers clients about the jobs on a host. People do not call this.
#include "cli/subcommand.h"
#include "job/job_requests.h"
#include "jobs/on_slurm/slurm_requests.h"

#include <string>
#include <utility>

namespace lockstep::cli {
namespace {

Result<ExitCode> host_job_command(const Call& call) {
  auto of_slurm = jobs::on_slurm::serve_slurm_request(call.words);
  const auto code = of_slurm ? std::move(*of_slurm) : job::serve_request(call.words);
  if (code) return passed_on(*code);
  // A follower's stderr is the job's: a word of its own there would count among the job's bytes.
  const std::string verb = call.words.empty() ? "" : call.words.front();
  if (verb == "follow" || verb == "print") return ExitCode::failed;
  return Failure(code.error());
}

}  // namespace

extern constinit const Subcommand kHostJob{.name = "host-job",
                                           .summary = "the jobs on this host",
                                           .run = host_job_command,
                                           .fails_with = always(ExitCode::failed),
                                           .listed = false};

}  // namespace lockstep::cli
