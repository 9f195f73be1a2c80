// The queue: which jobs of this user on this host a queued job must wait for. All hosts of two jobs
// must order them alike, although the requests may arrive in different orders. The older job goes
// first, with one exception: a host may have started the younger job before it heard of the older
// one. The client then tells all hosts (JobSpec::after). Pure.
#pragma once

#include "job/job_spec.h"

#include <string>
#include <vector>

namespace lockstep::job {

// Returns the ids of the jobs ahead of `job`. others: the running and waiting jobs on this host.
std::vector<std::string> jobs_ahead(const JobSpec& job, const std::vector<JobRecord>& others);

// Returns the ids of jobs let go by this host before `job` was prepared. They come before `job` on
// all of its hosts.
std::vector<std::string> jobs_let_go(const JobSpec& job, const std::vector<JobRecord>& others);

}  // namespace lockstep::job
