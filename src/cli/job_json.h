// How a job stands, for programs.
#pragma once

#include "cluster/job_book.h"
#include "cluster/job_follow.h"
#include "cluster/slurm_follow.h"
#include "codec/json.h"

#include <optional>
#include <string>
#include <vector>

namespace lockstep::cli {

// What `lockstep wait --json` and `lockstep cancel --json` print. nodes: of each of the job's
// hosts; nullopt where it did not tell.
nlohmann::ordered_json job_json(const cluster::KnownJob& job,
                                const std::vector<std::optional<job::JobRecord>>& nodes);

// What `lockstep run --detach --json` and `lockstep resume --json` print. ahead: the jobs that it
// waits for.
nlohmann::ordered_json started_json(const std::string& id, const std::vector<std::string>& nodes,
                                    const std::vector<std::string>& ahead);

// The same for a job of Slurm's.
nlohmann::ordered_json slurm_job_json(const cluster::KnownJob& job,
                                      const cluster::SlurmEnding& ending);

}  // namespace lockstep::cli
