// JSON about jobs for programs. docs/remote.md lists the members.
#pragma once

#include "codec/json.h"
#include "jobs/job.h"
#include "jobs/job_status.h"

#include <string>
#include <vector>

namespace lockstep::cli {

// Returns the object that `wait --json` and `cancel --json` print. `code` is absent until the job
// has ended and a host has recorded the code. `ended_ms` and `why` are absent if unknown. `hosts`
// has the state of each host.
nlohmann::ordered_json job_json(const jobs::Job& job, const jobs::JobStatus& status);

// Returns the object that `run --detach --json` and `resume --json` print. ahead: the earlier jobs
// in the queue.
nlohmann::ordered_json started_json(const std::string& id, const std::vector<std::string>& nodes,
                                    const std::vector<std::string>& ahead);

}  // namespace lockstep::cli
