// What a run of a job has shown of its nodes, noted for the jobs that are submitted next.
#pragma once

#include "slurm/bad_nodes.h"
#include "slurm/job_folder.h"
#include "slurm/preflight.h"
#include "slurm/verdict.h"

#include <functional>
#include <string>
#include <vector>

namespace lockstep::slurm {

// Those that the pre-flight of this run has left out, and those that ended without a word while the
// job went on or ended for that: with the weights that they are noted by. Who stops a job ends
// agents before they can report. answers: whether the node's machine is there at all. Pure.
std::vector<NodeFailure> failures_of(const PreflightDecision& preflight, const Verdict& verdict,
                                     const std::string& own_host,
                                     const std::function<bool(const std::string&)>& answers);

// Of the job whose batch step calls this; the names of those that are to be left out when it runs
// again. Nothing that goes wrong here is an error of the job.
std::vector<std::string> note_bad_nodes(const JobFolder& folder, const BatchState& state,
                                        const Verdict& verdict);

// Those that the pre-flight of this run has found bad.
std::vector<std::string> unfit_nodes(const JobFolder& folder, int run);

}  // namespace lockstep::slurm
