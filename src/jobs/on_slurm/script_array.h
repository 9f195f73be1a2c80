// The tasks of an array in a user's own batch script (`#SBATCH --array=0-31%4`), as the rows of a
// sweep: row N is task N. Pure.
#pragma once

#include "jobs/on_slurm/slurm_submit.h"

#include <string_view>

namespace lockstep::jobs::on_slurm {

// Returns the rows for the value of --array: "0-31", "1,3,5-7", "1-9:2", each also with "%N".
// invalid_input: sbatch would refuse the value, or a task's number is larger than a row's may be.
Result<SlurmSweep> sweep_of_array(std::string_view array);

}  // namespace lockstep::jobs::on_slurm
