// Orders to Slurm about the arrays of a sweep that it has.
#pragma once

#include "base/error.h"
#include "jobs/on_slurm/slurm_world.h"

#include <string>
#include <vector>

namespace lockstep::jobs::on_slurm {

// All take Slurm's ids in the order of the arrays, and pass over "".

// Cancels the arrays, the last first: the end of an array would start the next array, which waits
// for it. Arrays that have ended are passed over, unless all have. Any other refusal ends the loop.
Status cancel_arrays(const std::vector<std::string>& arrays, const SlurmWorld& world);

// Cancels arrays of a submission that failed. Returns the error with what has become of them.
Error taken_back(Error error, std::vector<std::string> arrays, const SlurmWorld& world);

// Lets held arrays begin, unless the user's own options hold them. settings: sbatch's options of
// the whole sweep. The error names the arrays, and the command that lets them begin.
Status release_arrays(const std::vector<std::string>& arrays,
                      const std::vector<std::string>& settings, const SlurmWorld& world);

}  // namespace lockstep::jobs::on_slurm
