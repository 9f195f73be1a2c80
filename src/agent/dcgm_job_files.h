// Tells DCGM's exporter which job uses a GPU (--dcgm-job-dir). The folder has a file for each GPU,
// named by the GPU's index, with the id of a job in each line. The exporter, started with
// --hpc-job-mapping-dir, gives the GPU's figures the label hpc_job. Jobs that share a GPU share the
// file. The files have no lock, as with a prolog of Slurm: if two jobs begin in the same moment,
// one may lose the line.
#pragma once

#include "base/error.h"

#include <set>
#include <string>

namespace lockstep::agent {

class DcgmJobFiles {
 public:
  // job: its id, a line. Fails with invalid_input if the folder is not there, or not writable.
  static Result<DcgmJobFiles> open(const std::string& folder, const std::string& job);

  // Adds the job's line to the files of these GPUs, and removes the line from all other files.
  // Warns once about a file that cannot be written: the job goes on.
  void show(const std::set<int>& gpus);

 private:
  DcgmJobFiles(std::string folder, std::string job)
      : folder_(std::move(folder)), job_(std::move(job)) {}
  Status put(int gpu, bool is_used) const;

  std::string folder_;
  std::string job_;
  std::set<int> shown_;
  bool told_ = false;
};

}  // namespace lockstep::agent
