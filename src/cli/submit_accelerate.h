// `lockstep submit ... -- accelerate launch ...`: understood here where it can be, else on the
// first node of the job.
#pragma once

#include "base/error.h"
#include "launchers/launch_words.h"

#include <optional>
#include <string>
#include <vector>

namespace lockstep::cli {

// given: as read_launch() has left it. nodes: of the job; nullopt: Slurm chooses. nullopt: it is
// asked in the job, as accelerate is not there, or counts the GPUs of the machine that it is asked
// on. invalid_input: accelerate refuses the words, or is told of other nodes than the job has.
Result<std::optional<launchers::Launch>> accelerate_here(const launchers::Launch& given,
                                                         std::optional<int> nodes);

// The script of such a job.
std::string accelerate_script(const std::vector<std::string>& command);

}  // namespace lockstep::cli
