// `lockstep submit ... -- accelerate launch ...`: converts accelerate's words on this machine if
// possible, else on the first node of the job.
#pragma once

#include "base/error.h"
#include "launchers/launch_words.h"

#include <optional>
#include <string>
#include <vector>

namespace lockstep::cli {

// Returns the launch as this machine's accelerate understands the words. nullopt: the job must ask,
// because accelerate is not installed here, or would count this machine's GPUs. given: the result
// of read_launch(). nodes: the job's number of nodes; nullopt: Slurm chooses. Errors: invalid_input
// (accelerate refuses the words, or the words name another number of machines).
Result<std::optional<launchers::Launch>> accelerate_here(const launchers::Launch& given,
                                                         std::optional<int> nodes);

// Returns the batch script of a job whose first node asks accelerate.
std::string accelerate_script(const std::vector<std::string>& command);

}  // namespace lockstep::cli
