// Which jobs of this user on this host a queued one has to wait for, queued ones or not. All hosts
// of two jobs put them in the same order, though their requests cross on the way: the older one
// goes first, unless a host had let the younger one go before it knew of the older one, which is
// then told everywhere (JobSpec::after). Pure.
#pragma once

#include "job/job_spec.h"

#include <string>
#include <vector>

namespace lockstep::job {

// others: what runs or waits on this host.
std::vector<std::string> jobs_ahead(const JobSpec& job, const std::vector<JobRecord>& others);

// Those that were let go here before `job` was prepared: they are ahead of it on all of its hosts.
std::vector<std::string> jobs_let_go(const JobSpec& job, const std::vector<JobRecord>& others);

}  // namespace lockstep::job
