// Answers `lockstep host-job` for jobs that a client on another host has submitted to Slurm on this
// login host. Requests and answers are the same as for a job that runs on this host.
#pragma once

#include "base/error.h"
#include "jobs/on_slurm/slurm_world.h"

#include <optional>
#include <string>
#include <vector>

namespace lockstep::jobs::on_slurm {

// Answers one request. words: follow ID OUT ERR | print ID OUT ERR | places ID LINES | status ID |
// report ID | cancel ID. nullopt: the request is about no such job. Blocks the handled signals.
std::optional<Result<int>> serve_slurm_request(const std::vector<std::string>& words,
                                               const SlurmWorld& world = {});

}  // namespace lockstep::jobs::on_slurm
