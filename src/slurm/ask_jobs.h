// Asks Slurm for the states of jobs, by squeue, scontrol and sacct in that order.
#pragma once

#include "slurm/job_report.h"
#include "slurm/tools.h"

#include <string>
#include <vector>

namespace lockstep::slurm {

// A job as the submitter knows it. Slurm reuses ids after some time, and after its controller lost
// the state. A report with another name, another user or an earlier submission is therefore about
// another job. Empty name, empty user and no time match any job with the id.
struct JobAsked {
  std::string id;
  std::string name = {};
  std::string user = {};
  Moment since = {};  // time of submission by the submitter's clock
  // Asks accounting too: the controller forgets the tasks of an array one by one.
  bool all_tasks = false;
};

enum class Detail {
  usual,  // one squeue call; scontrol only for jobs that ended or are not listed
  all,    // scontrol for every job: restarts, excluded nodes, folder, output
};

// Returns the reports about `jobs` and blocks until Slurm answers. Leaves out jobs that Slurm has
// forgotten. Arrays and heterogeneous jobs give one report per part. Errors: unavailable (Slurm
// does not answer; running jobs go on), not_found (Slurm's programs are not installed), timeout,
// invalid_input.
Result<std::vector<JobReport>> ask_jobs(const std::vector<JobAsked>& jobs,
                                        Detail detail = Detail::usual,
                                        const RunTool& run = run_here);

// Returns whether a report is about this job. Submission times may differ by two minutes of clock
// skew.
bool is_of(const JobReport& status, const JobAsked& job);

}  // namespace lockstep::slurm
