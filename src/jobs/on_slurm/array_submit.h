// Submits the array jobs of a sweep: all of them, or none.
#pragma once

#include "jobs/on_slurm/row_arrays.h"
#include "jobs/on_slurm/slurm_submit.h"

#include <string>
#include <vector>

namespace lockstep::jobs::on_slurm {

struct ArrayCall {
  SbatchCall sbatch;  // settings: of the whole sweep
  std::vector<RowArray> arrays;
  // The job has several arrays, of which these may be one. Each is then given its first row.
  bool several = false;
  // Each array waits for the end of the one before it: must_chain().
  bool one_at_a_time = false;
  // Slurm's ids of earlier submissions, by the index of the array.
  std::vector<std::string> earlier = {};
};

// Returns Slurm's ids, in the order of the arrays. Several arrays are held: record them, and call
// release_arrays(). If one is refused, cancels those before it. canceled: as for call_sbatch().
Result<std::vector<std::string>> submit_arrays(const ArrayCall& call,
                                               const slurm::JobFolder& folder,
                                               const SlurmWorld& world);

// Asks Slurm how many rows an array may have. Without an answer: Slurm's default.
std::size_t ask_array_rows(const slurm::RunTool& run);

}  // namespace lockstep::jobs::on_slurm
