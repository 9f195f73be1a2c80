// Follows a job on all of its hosts from the client. Prints the output, and resumes at the exact
// byte on a host whose connection was cut or whose follower died. Returns how the job ended.
#pragma once

#include "base/error.h"
#include "hosts/command_run.h"
#include "jobs/job.h"
#include "jobs/on_hosts/client_vote.h"

#include <optional>

namespace lockstep::jobs::on_hosts {

struct FollowRequest {
  jobs::KnownJob job;
  FollowOptions options = {};
  std::optional<VotePlan> vote = {};  // this client votes while it follows
};

// Returns once the hosts' own records say that the job has ended or is lost, or after a signal. If
// a follower on a host ends but the record there says that the job runs, another follower is
// started. The handled signals must be blocked.
Result<Followed> follow_job(const FollowRequest& request,
                            const hosts::OpenLink& open_link = hosts::host_links(),
                            const hosts::RunCommand& run = hosts::over_links());

}  // namespace lockstep::jobs::on_hosts
