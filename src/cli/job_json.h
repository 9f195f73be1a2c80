// How a job stands, for programs.
#pragma once

#include "cluster/job_book.h"
#include "cluster/job_follow.h"
#include "codec/json.h"

#include <optional>
#include <vector>

namespace lockstep::cli {

// What `lockstep wait --json` and `lockstep cancel --json` print. nodes: of each of the job's
// hosts; nullopt where it did not tell.
nlohmann::ordered_json job_json(const cluster::KnownJob& job,
                                const std::vector<std::optional<job::JobRecord>>& nodes);

}  // namespace lockstep::cli
