// Asks Slurm how jobs are, whichever of its programs knows.
#pragma once

#include "slurm/job_status.h"
#include "slurm/tools.h"

#include <string>
#include <vector>

namespace lockstep::slurm {

// Which job is meant: Slurm gives an id again after some time (and after a controller lost its
// state), so a report of another name, another user or an earlier time is of another job. Empty
// name and user, and no time: any job of that id is meant.
struct JobAsked {
  std::string id;
  std::string name = {};
  std::string user = {};
  Moment since = {};  // when it was submitted, as the one who submitted it knows
};

enum class Detail {
  usual,  // one squeue for all; the rest is asked for jobs that have ended or are not listed
  all,    // of jobs that wait or run, too: restarts, excluded nodes, folder, output
};

// Blocks until Slurm answers. A job that none of its programs knows (any more) is left out; an
// array and a heterogeneous job are one report for each part. Errors: unavailable (Slurm does not
// answer: jobs go on meanwhile), not_found (its programs are not here), timeout, invalid_input.
Result<std::vector<JobStatus>> ask_jobs(const std::vector<JobAsked>& jobs,
                                        Detail detail = Detail::usual,
                                        const RunTool& run = run_here);

bool is_of(const JobStatus& status, const JobAsked& job);

}  // namespace lockstep::slurm
