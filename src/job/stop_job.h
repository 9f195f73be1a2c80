// Stops a job on this host, as `lockstep cancel` does: its supervisor is asked to.
#pragma once

#include "base/error.h"
#include "io/fd.h"
#include "job/job_files.h"

#include <string>
#include <string_view>

namespace lockstep::job {

// A descriptor that turns readable when the supervisor is gone, and all that it stood above; none
// where nothing of the job runs. reason: for people, where it is not a person who stops it; it
// becomes the state's `problem`.
Result<io::Fd> stop_job(const JobFiles& files, std::string_view reason = {});

// For the supervisor.
std::string stop_reason(const JobFiles& files);
void forget_stop_reason(const JobFiles& files);

}  // namespace lockstep::job
