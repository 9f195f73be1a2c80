// What a client elsewhere asks of a job that it has submitted to Slurm on this login host, by
// `lockstep host-job`: the same words and answers as for a job that runs here.
#pragma once

#include "base/error.h"

#include <optional>
#include <string>
#include <vector>

namespace lockstep::jobs::on_slurm {

// words: follow ID OUT ERR | print ID OUT ERR | places ID LINES | status ID | cancel ID.
// nullopt: it is not about such a job. Blocks the handled signals.
std::optional<Result<int>> serve_slurm_request(const std::vector<std::string>& words);

}  // namespace lockstep::jobs::on_slurm
