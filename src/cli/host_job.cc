// lockstep host-job: answers clients about the jobs on a host. People do not call this.
#include "cli/subcommand.h"
#include "job/job_requests.h"
#include "jobs/on_slurm/slurm_requests.h"

#include <utility>

namespace lockstep::cli {
namespace {

Result<ExitCode> host_job_command(const Call& call) {
  // Jobs on this host and jobs in its Slurm share the words of requests. Slurm's part knows by the
  // id whether the job is Slurm's.
  auto of_slurm = jobs::on_slurm::serve_slurm_request(call.words);
  const auto code = of_slurm ? std::move(*of_slurm) : job::serve_request(call.words);
  if (code) return passed_on(*code);
  // A follower's stderr carries the job's stderr, and clients count its bytes to resume after a cut
  // connection. A message of our own would spoil that count.
  const auto verb = job::verb_of(call.words);
  if (verb == job::Verb::follow || verb == job::Verb::print) return ExitCode::failed;
  return Failure(code.error());
}

}  // namespace

extern constinit const Subcommand kHostJob{.name = "host-job",
                                           .summary = "the jobs on this host",
                                           .run = host_job_command,
                                           .fails_with = always(ExitCode::failed),
                                           .listed = false};

}  // namespace lockstep::cli
