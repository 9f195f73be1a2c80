// lockstep host-job: what clients ask of the jobs on a host; people do not call it.
#include "cli/subcommand.h"
#include "cluster/slurm_requests.h"
#include "job/job_requests.h"

#include <utility>

namespace lockstep::cli {
namespace {

int host_job_command(const Call& call) {
  auto of_slurm = cluster::serve_slurm_request(call.words);
  const auto code = of_slurm ? std::move(*of_slurm) : job::serve_request(call.words);
  if (code) return *code;
  print_error("lockstep host-job", code.error());
  return 1;
}

}  // namespace

extern constinit const Subcommand kHostJob{.name = "host-job",
                                           .summary = "the jobs on this host",
                                           .run = host_job_command,
                                           .listed = false};

}  // namespace lockstep::cli
