// How a job stands, for programs.
#pragma once

#include "codec/json.h"
#include "jobs/job_book.h"
#include "jobs/on_hosts/job_follow.h"
#include "jobs/on_slurm/slurm_follow.h"

#include <optional>
#include <string>
#include <vector>

namespace lockstep::cli {

// What `lockstep wait --json` and `lockstep cancel --json` print. nodes: of each of the job's
// hosts; nullopt where it did not tell.
nlohmann::ordered_json job_json(const jobs::KnownJob& job,
                                const std::vector<std::optional<job::JobRecord>>& nodes);

// What `lockstep run --detach --json` and `lockstep resume --json` print. ahead: the jobs that it
// waits for.
nlohmann::ordered_json started_json(const std::string& id, const std::vector<std::string>& nodes,
                                    const std::vector<std::string>& ahead);

// The same for a job of Slurm's.
nlohmann::ordered_json slurm_job_json(const jobs::KnownJob& job,
                                      const jobs::on_slurm::SlurmEnding& ending);

}  // namespace lockstep::cli
