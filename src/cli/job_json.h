// The status of a job, for programs.
#pragma once

#include "codec/json.h"
#include "jobs/job_book.h"
#include "jobs/job_status.h"

#include <string>
#include <vector>

namespace lockstep::cli {

// What `lockstep wait --json` and `lockstep cancel --json` print: id, name, on, state, code (once
// the job has ended, and a host recorded it), canceled, ended_ms and why where they are known, and
// the hosts with their own state.
nlohmann::ordered_json job_json(const jobs::KnownJob& job, const jobs::JobStatus& status);

// What `lockstep run --detach --json` and `lockstep resume --json` print. ahead: the jobs that it
// waits for.
nlohmann::ordered_json started_json(const std::string& id, const std::vector<std::string>& nodes,
                                    const std::vector<std::string>& ahead);

}  // namespace lockstep::cli
