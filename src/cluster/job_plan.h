// What a client keeps of a job so that a part of it which was lost can begin again: the words of
// each node and the job's own token. The user's variables and secrets are not in it. Pure.
#pragma once

#include "base/error.h"
#include "cluster/job_book.h"
#include "cluster/job_start.h"

#include <string>
#include <vector>

namespace lockstep::cluster {

inline constexpr const char* kTokenVariable = "LOCKSTEP_RDZV_TOKEN";

std::string plan_text(const JobRequest& request, const StartedJob& started);

// nodes: the numbers of those that were lost. env: the user's variables, once more.
Result<JobRequest> resumed_request(const KnownJob& job, const std::vector<int>& nodes,
                                   const std::vector<std::string>& env);

}  // namespace lockstep::cluster
