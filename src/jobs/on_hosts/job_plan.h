// What a client keeps of a job so that a part of it which was lost can begin again: the words of
// each node, the job's own token, and the user's variables. The plan has the names of secrets and
// never their values. It lies in state.db, which only its user can read. Pure.
#pragma once

#include "base/error.h"
#include "jobs/job_book.h"
#include "jobs/on_hosts/job_start.h"

#include <string>
#include <vector>

namespace lockstep::jobs::on_hosts {

inline constexpr const char* kTokenVariable = "LOCKSTEP_RDZV_TOKEN";

std::string plan_text(const JobRequest& request, const StartedJob& started);

// nodes: the numbers of those that were lost. env: variables that count before those that are kept.
// invalid_input names the secrets that are missing in it.
Result<JobRequest> resumed_request(const jobs::KnownJob& job, const std::vector<int>& nodes,
                                   const std::vector<std::string>& env);

}  // namespace lockstep::jobs::on_hosts
