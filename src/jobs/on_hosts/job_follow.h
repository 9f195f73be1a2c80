// Follows a job on all of its hosts from the client: prints its output, comes back at the very byte
// to a host whose connection was cut or whose follower died, and returns how the job ended.
#pragma once

#include "base/error.h"
#include "jobs/job.h"

namespace lockstep::jobs::on_hosts {

struct FollowRequest {
  jobs::KnownJob job;
  FollowOptions options = {};
};

// Returns once the hosts' own records say that the job has ended or is lost, or by a signal. Where
// a follower on a host ends and the record there says otherwise, another follower is started.
// Expects the handled signals blocked.
Result<Followed> follow_job(const FollowRequest& request);

}  // namespace lockstep::jobs::on_hosts
