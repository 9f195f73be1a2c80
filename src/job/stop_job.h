// Stops a job on this host by asking its supervisor, as `lockstep cancel` does.
#pragma once

#include "base/error.h"
#include "io/fd.h"
#include "job/job_files.h"

#include <string>
#include <string_view>

namespace lockstep::job {

// Asks the supervisor to stop. Returns a descriptor that becomes readable once the supervisor and
// all processes below it are gone, or an empty one if nothing of the job runs. reason: shown to the
// user if something else than the user stops the job; it becomes the state's `problem`.
Result<io::Fd> stop_job(const JobFiles& files, std::string_view reason = {});

// Read and remove the reason; for the supervisor.
std::string stop_reason(const JobFiles& files);
void forget_stop_reason(const JobFiles& files);

}  // namespace lockstep::job
