// Where the processes of a job's run see who speaks for the job: watch/RUN.EPOCH in the job's
// folder. The folder of epoch 0 is the batch step's. When that is gone, whoever makes the folder of
// the next epoch speaks for the job: one process can. In it:
//   lease      changes every second while its owner lives
//   NODE       the same of each node's process, from epoch 1 on; "... ended" once its agent has
//   NODE.log   what the node says from epoch 1 on; the owner adds it to the job's output
#pragma once

#include "base/error.h"
#include "slurm/job_folder.h"

#include <string>
#include <string_view>
#include <vector>

namespace lockstep::slurm {

constexpr std::string_view kLease = "lease";

class WatchFolder {
 public:
  WatchFolder(const JobFolder& job, int run, int epoch);

  // already_exists: somebody else has claimed it.
  Status claim() const;
  bool is_claimed() const;
  std::string at(std::string_view name) const { return path_ + "/" + std::string(name); }
  // Written in place, as a network file system shows a replaced file late.
  void beat(std::string_view name, std::string_view text) const;
  std::string read(std::string_view name) const;  // empty: it is not there
  std::vector<std::string> names() const;

 private:
  std::string path_;
};

}  // namespace lockstep::slurm
