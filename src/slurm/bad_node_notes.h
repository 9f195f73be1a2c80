// Records which nodes failed in a run of a job, for the jobs that are submitted next.
#pragma once

#include "slurm/bad_nodes.h"
#include "slurm/job_folder.h"
#include "slurm/preflight.h"
#include "slurm/verdict.h"

#include <functional>
#include <string>
#include <vector>

namespace lockstep::slurm {

// Returns the failures proven by a run, each with a weight. Proven are nodes excluded by the
// pre-flight, and nodes without a report although the job was not stopped. A stop may kill agents
// before they report, so silence proves nothing after a stop. answers: returns whether the node's
// machine can be reached. Pure.
std::vector<NodeFailure> failures_of(const PreflightDecision& preflight, const Verdict& verdict,
                                     const std::string& own_host,
                                     const std::function<bool(const std::string&)>& answers);

// Records the failures of the calling batch step's job. Returns the nodes that the next run of the
// job must exclude. Failures to record are logged and never fail the job.
std::vector<std::string> note_bad_nodes(const JobFolder& folder, const BatchState& state,
                                        const Verdict& verdict);

// Returns the nodes that the pre-flight of run `run` found bad.
std::vector<std::string> unfit_nodes(const JobFolder& folder, int run);

}  // namespace lockstep::slurm
