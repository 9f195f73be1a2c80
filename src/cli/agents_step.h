// Reads the command of a Slurm step that starts agents.
#pragma once

#include "cli/options.h"
#include "slurm/batch.h"

#include <optional>
#include <string>
#include <vector>

namespace lockstep::cli {

// Returns what the agents need to begin. nullopt: the step's words do not tell, as those of a shell
// that calls the launcher, or the agents refuse the words. env: reads a variable.
std::optional<slurm::Beginning> beginning_of(const std::vector<std::string>& step,
                                             const GetEnv& env);

}  // namespace lockstep::cli
